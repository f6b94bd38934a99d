/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "topic.hpp"

#include <algorithm>

namespace rosbag2_storage_steadyio
{

namespace
{

/* PACKAGE/msg/NAME, none of them empty. */
bool is_type_name(const std::string &type)
{
	return std::count(type.begin(), type.end(), '/') == 2 && type.front() != '/' &&
	       type.back() != '/' && type.find("//") == std::string::npos;
}

} /* namespace */

bool is_same_type(const Topic &one, const Topic &other)
{
	return one.type == other.type && one.encoding == other.encoding &&
	       one.schema_encoding == other.schema_encoding && one.schema == other.schema;
}

std::string export_problem(const Topic &topic)
{
	if (topic.encoding != "cdr")
		return "its encoding is \"" + topic.encoding + "\", and must be \"cdr\"";
	if (topic.schema_encoding != "ros2msg" && topic.schema_encoding != "ros2idl")
		return "rosbag2 has no definition of " + topic.type +
		       ": source the workspace that has its package";
	if (!is_type_name(topic.type))
		return "its type is \"" + topic.type +
		       "\", and must be such as \"sensor_msgs/msg/Imu\"";
	return "";
}

} /* namespace rosbag2_storage_steadyio */
