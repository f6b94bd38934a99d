/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A topic, without types of ROS. plugin.cpp makes it, and recording.cpp makes a channel of it. */
#ifndef ROSBAG2_STORAGE_STEADYIO_TOPIC_HPP
#define ROSBAG2_STORAGE_STEADYIO_TOPIC_HPP

#include <string>

namespace rosbag2_storage_steadyio
{

struct Topic {
	std::string name;
	/* As "sensor_msgs/msg/Imu". */
	std::string type;
	/* Of the messages: "cdr". */
	std::string encoding;
	/* "ros2msg" or "ros2idl"; something else if rosbag2 has found no definition. */
	std::string schema_encoding;
	std::string schema;
	/* A YAML list, as rosbag2 stores it. */
	std::string offered_qos_profiles;
	std::string type_hash;
	/* Whether a publisher offers "transient local". */
	bool is_latched = false;
};

/* Whether both have the same messages. */
bool is_same_type(const Topic &one, const Topic &other);

/*
 * Why `steady export --ros2` rejects a topic (device/export/src/rosbag2.rs); empty if it accepts it.
 * Its name is one of ROS.
 */
std::string export_problem(const Topic &topic);

} /* namespace rosbag2_storage_steadyio */

#endif
