/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The part of rosbag2's interface that reads. steadyio.h has no reader, so each of its functions is an
 * error that names the command which makes a readable bag.
 */
#ifndef ROSBAG2_STORAGE_STEADYIO_WRITE_ONLY_HPP
#define ROSBAG2_STORAGE_STEADYIO_WRITE_ONLY_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <rosbag2_storage/storage_interfaces/read_write_interface.hpp>

namespace rosbag2_storage_steadyio
{

[[noreturn]] inline void reject_reading(const std::string &dir)
{
	throw std::runtime_error(
		"steadyio writes bags and reads none: make one with 'steady export " + dir +
		" --ros2 DIR', and read DIR");
}

class WriteOnly : public rosbag2_storage::storage_interfaces::ReadWriteInterface
{
      public:
	bool set_read_order(const rosbag2_storage::ReadOrder &) override
	{
		reject_reading(segments());
	}

	bool has_next() override
	{
		reject_reading(segments());
	}

	std::shared_ptr<rosbag2_storage::SerializedBagMessage> read_next() override
	{
		reject_reading(segments());
	}

	std::vector<rosbag2_storage::TopicMetadata> get_all_topics_and_types() override
	{
		reject_reading(segments());
	}

	void get_all_message_definitions(std::vector<rosbag2_storage::MessageDefinition> &) override
	{
		reject_reading(segments());
	}

	void set_filter(const rosbag2_storage::StorageFilter &) override
	{
		reject_reading(segments());
	}

	void reset_filter() override
	{
		reject_reading(segments());
	}

	void seek(const rcutils_time_point_value_t &) override
	{
		reject_reading(segments());
	}

      protected:
	/* The directory of the segments. */
	virtual std::string segments() const = 0;
};

} /* namespace rosbag2_storage_steadyio */

#endif
