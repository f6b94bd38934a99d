/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The file of `ros2 bag record --storage-config-file`, in YAML. Its keys are the names of steadyio.h.
 * plugin.cpp reads it, and recording.cpp records with it. There are no types of ROS in it.
 */
#ifndef ROSBAG2_STORAGE_STEADYIO_SETTINGS_HPP
#define ROSBAG2_STORAGE_STEADYIO_SETTINGS_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <steadyio.h>

namespace rosbag2_storage_steadyio
{

/* The keys of one topic. 0: as for all topics, or libsteadyio's default. */
struct TopicSettings {
	uint64_t record_bytes_max = 0;
	uint64_t period_ns = 0;
	uint64_t ring_bytes = 0;
	/* Without it, a topic is latched if a publisher offers "transient local". */
	std::optional<bool> is_latched;
};

struct Settings {
	Settings();

	/* The longest message of a topic. */
	uint64_t record_bytes_max_of(const std::string &topic) const;

	/* Numbers only: texts are in the members below. */
	steadyio_config config{};
	/* Of the segments. Empty: a new one in the bag. */
	std::string dir;
	std::string control_socket;
	/* Of topics without one: no type of ROS has a longest message. */
	uint64_t record_bytes_max = 256 << 10;
	/* Each write returns when its messages are durable. */
	bool has_durable_writes = false;
	std::map<std::string, TopicSettings> topics;
};

/* An empty path: the defaults. Throws std::runtime_error with the file, the key and the remedy. */
Settings read_settings(const std::string &path);

} /* namespace rosbag2_storage_steadyio */

#endif
