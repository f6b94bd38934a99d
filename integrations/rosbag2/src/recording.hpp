/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A recording of ROS messages by libsteadyio, without types of ROS: plugin.cpp translates these, and
 * tests/rosbag2 uses it without ROS.
 *
 * Topics of ROS appear while others are recorded. The recorder therefore starts with one channel, for
 * the metadata of the bag, and each topic is a late channel. A topic that gets none is rejected with an
 * error, and its messages are counted as lost: the others are still recorded.
 */
#ifndef ROSBAG2_STORAGE_STEADYIO_RECORDING_HPP
#define ROSBAG2_STORAGE_STEADYIO_RECORDING_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <steadyio.h>

#include "settings.hpp"
#include "topic.hpp"

namespace rosbag2_storage_steadyio
{

enum class Level {
	INFO,
	WARNING,
	ERROR
};
using Log = std::function<void(Level, const std::string &)>;

/* Valid during the call that it is given to. */
struct Message {
	const std::string &topic;
	int64_t received_ns;
	/* 0 or less: unknown. */
	int64_t sent_ns;
	const void *data;
	size_t bytes;
};

class Recording
{
      public:
	/*
	 * Starts to record into `dir`. Throws std::runtime_error, as all functions do, with the text of
	 * steadyio_error().
	 */
	Recording(const Settings &settings, const std::string &dir, Log log);
	/* Makes everything durable, and logs what was lost. */
	~Recording();
	Recording(const Recording &) = delete;
	Recording &operator=(const Recording &) = delete;

	/* The same topic may be added again: rosbag2 does after it has removed one. */
	void add_topic(const Topic &topic);

	/* Returns the positions of the messages that are lost; with durable writes, or not durable. */
	std::vector<size_t> write(const std::vector<Message> &messages);

	/* A metadata record of MCAP, as `steady export` writes it. */
	void add_metadata(const std::string &name, const std::string &key,
			  const std::string &value);

	/* Written to the device so far, with format and padding. */
	uint64_t device_bytes() const;
	/* Handed to the recorder so far, and not lost at once. */
	uint64_t messages() const;

      private:
	struct Channel {
		Topic topic;
		/* NULL: rejected. */
		steadyio_channel *handle = nullptr;
		uint64_t written = 0;
		uint64_t too_long = 0;
		uint64_t rejected = 0;
		bool is_loss_logged = false;
	};
	struct Close {
		void operator()(steadyio_recorder *recorder) const
		{
			steadyio_close(recorder);
		}
	};

	steadyio_channel *add_channel(const Topic &topic) const;
	void start_with_metadata();
	bool append(const Message &message);
	void log_first_loss(Channel &channel, int status, size_t bytes);
	bool is_all_durable(uint64_t lost_before);
	uint64_t lost_in_writing() const;
	uint64_t log_losses(const Channel &channel) const;
	void finish();

	const Settings settings;
	const std::string dir;
	const Log log;
	/* rosbag2 writes from the thread of its cache, and adds topics from another. */
	mutable std::mutex mutex;
	std::unique_ptr<steadyio_recorder, Close> recorder;
	steadyio_channel *metadata = nullptr;
	std::map<std::string, Channel> channels;
};

} /* namespace rosbag2_storage_steadyio */

#endif
