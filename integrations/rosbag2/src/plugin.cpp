/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * rosbag2's storage plugin "steadyio": `ros2 bag record -s steadyio` records through it. It translates
 * types of ROS to those of recording.hpp, and rejects what a pool of segments cannot do.
 */
#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/qos.hpp>
#include <rcutils/logging_macros.h>
#include <rosbag2_storage/bag_metadata.hpp>
#include <rosbag2_storage/qos.hpp>
#include <rosbag2_storage/yaml.hpp>

#include "recording.hpp"
#include "reference.hpp"
#include "settings.hpp"
#include "topic.hpp"
#include "write_only.hpp"

namespace rosbag2_storage_steadyio
{

namespace
{

constexpr char STORAGE_ID[] = "steadyio";
constexpr char LOG_NAME[] = "rosbag2_storage_steadyio";
/* The last version in which policies are numbers: Humble reads them, and later releases do. */
constexpr int QOS_VERSION = 8;

using BagMessage = std::shared_ptr<const rosbag2_storage::SerializedBagMessage>;
using rosbag2_storage::storage_interfaces::IOFlag;

void log_in_ros(Level level, const std::string &text)
{
	switch (level) {
	case Level::INFO:
		RCUTILS_LOG_INFO_NAMED(LOG_NAME, "%s", text.c_str());
		break;
	case Level::WARNING:
		RCUTILS_LOG_WARN_NAMED(LOG_NAME, "%s", text.c_str());
		break;
	case Level::ERROR:
		RCUTILS_LOG_ERROR_NAMED(LOG_NAME, "%s", text.c_str());
		break;
	}
}

/* A pool has segments instead of splits, and keeps the past on the medium instead of in a cache. */
void check_options(const rosbag2_storage::StorageOptions &options)
{
	const std::string &preset = options.storage_preset_profile;

	if (options.max_bagfile_size > 0 || options.max_bagfile_duration > 0)
		throw std::runtime_error("steadyio splits no bag: omit --max-bag-size and "
					 "--max-bag-duration, and set segment_bytes and keep in "
					 "the storage config");
	if (options.snapshot_mode)
		throw std::runtime_error("steadyio has no snapshot mode: omit --snapshot-mode, set "
					 "control_socket in the storage config, and use 'steady "
					 "incidents keep'");
	if (!preset.empty() && preset != "none")
		throw std::runtime_error("--storage-preset-profile " + preset +
					 ": steadyio has only \"none\"; use --storage-config-file");
	if (options.max_cache_size > 0)
		log_in_ros(Level::WARNING,
			   "record with --max-cache-size 0: a power cut loses what is in "
			   "rosbag2's cache, and a batch may be longer than a topic's ring");
}

bool is_transient_local(const rclcpp::QoS &qos)
{
	return qos.durability() == rclcpp::DurabilityPolicy::TransientLocal;
}

Topic topic_of(const rosbag2_storage::TopicMetadata &metadata,
	       const rosbag2_storage::MessageDefinition &definition)
{
	const std::vector<rclcpp::QoS> &offered = metadata.offered_qos_profiles;
	Topic topic;

	topic.name = metadata.name;
	topic.type = metadata.type;
	topic.encoding = metadata.serialization_format;
	topic.schema_encoding = definition.encoding;
	topic.schema = definition.encoded_message_definition;
	if (!offered.empty())
		topic.offered_qos_profiles =
			rosbag2_storage::serialize_rclcpp_qos_vector(offered, QOS_VERSION);
	topic.type_hash = metadata.type_description_hash;
	topic.is_latched = std::any_of(offered.begin(), offered.end(), is_transient_local);
	return topic;
}

Message message_of(const BagMessage &message)
{
	if (!message || !message->serialized_data)
		throw std::runtime_error("a message without data");
	return {message->topic_name, message->recv_timestamp, message->send_timestamp,
		message->serialized_data->buffer, message->serialized_data->buffer_length};
}

} /* namespace */

class Storage final : public WriteOnly
{
      public:
	void open(const rosbag2_storage::StorageOptions &options,
		  IOFlag flag = IOFlag::READ_WRITE) override
	{
		if (flag == IOFlag::READ_ONLY)
			reject_reading(read_reference(options.uri));
		check_options(options);
		const Settings settings = read_settings(options.storage_config_uri);
		dir = std::filesystem::absolute(settings.dir.empty() ? options.uri : settings.dir)
			      .string();
		recording = std::make_unique<Recording>(settings, dir, log_in_ros);
		file = options.uri + ".steadyio";
		write_reference(file, dir);
	}

	rosbag2_storage::BagMetadata get_metadata() override
	{
		rosbag2_storage::BagMetadata metadata;

		metadata.storage_identifier = STORAGE_ID;
		metadata.relative_file_paths = {file};
		metadata.bag_size = get_bagfile_size();
		metadata.message_count = recording ? recording->messages() : 0;
		return metadata;
	}

	std::string get_relative_file_path() const override
	{
		return file;
	}

	uint64_t get_bagfile_size() const override
	{
		return recording ? recording->device_bytes() : 0;
	}

	std::string get_storage_identifier() const override
	{
		return STORAGE_ID;
	}

	/* Never used: check_options() rejects splits. */
	uint64_t get_minimum_split_file_size() const override
	{
		return 0;
	}

	void update_metadata(const rosbag2_storage::BagMetadata &metadata) override
	{
		const std::string &mode = metadata.compression_mode;

		if (!mode.empty() && mode != "NONE" && mode != "none")
			throw std::runtime_error(
				"--compression-mode " + mode +
				": steadyio compresses blocks instead: omit the option, and set "
				"\"compression: zstd\" in the storage config");
		const YAML::Node node =
			YAML::convert<rosbag2_storage::BagMetadata>::encode(metadata);
		opened().add_metadata("rosbag2", "serialized_metadata", YAML::Dump(node));
	}

	void create_topic(const rosbag2_storage::TopicMetadata &topic,
			  const rosbag2_storage::MessageDefinition &definition) override
	{
		opened().add_topic(topic_of(topic, definition));
	}

	/* A channel of MCAP stays: the topic's messages so far are in it. */
	void remove_topic(const rosbag2_storage::TopicMetadata &) override
	{
	}

	void write(BagMessage message) override
	{
		write_message(message);
	}

	void write(const std::vector<BagMessage> &messages) override
	{
		write_messages(messages);
	}

	/*
	 * rosbag2 after 0.32 has these two in its interface. Without `override` they are also correct
	 * before that.
	 */
	bool write_message(BagMessage message)
	{
		return opened().write({message_of(message)}).empty();
	}

	/* Returns the positions of those that are lost. */
	std::vector<size_t> write_messages(const std::vector<BagMessage> &messages)
	{
		std::vector<Message> all;

		all.reserve(messages.size());
		for (const BagMessage &message : messages)
			all.push_back(message_of(message));
		return opened().write(all);
	}

      private:
	std::string segments() const override
	{
		return dir;
	}

	Recording &opened() const
	{
		if (!recording)
			throw std::runtime_error("steadyio: the bag is not open for writing");
		return *recording;
	}

	/* Of the segments. */
	std::string dir;
	/* Of the bag: it names `dir`. */
	std::string file;
	std::unique_ptr<Recording> recording;
};

} /* namespace rosbag2_storage_steadyio */

PLUGINLIB_EXPORT_CLASS(rosbag2_storage_steadyio::Storage,
		       rosbag2_storage::storage_interfaces::ReadWriteInterface)
