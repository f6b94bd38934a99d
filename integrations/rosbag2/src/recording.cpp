/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "recording.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

namespace rosbag2_storage_steadyio
{

namespace
{

/* How long a durable write waits for the device, beyond the loss window, in which it syncs. */
constexpr uint64_t DEVICE_TIMEOUT_MS = 60000;
/* The topic and key by which an export finds records that are no messages. */
constexpr char METADATA_TOPIC[] = "/mcap/metadata";
constexpr char METADATA_KEY[] = "steadyio.record";
/* rosbag2 writes the metadata at the beginning and the end; a ring has room for two at least. */
constexpr uint64_t METADATA_RECORDS = 4;
constexpr uint64_t METADATA_BYTES_MAX = 256 << 10;

void check(int status, const std::string &what)
{
	if (status < 0)
		throw std::runtime_error(what + ": " + steadyio_error());
}

/* The time of rosbag2 as MCAP has it. */
uint64_t time_ns(int64_t ns)
{
	return static_cast<uint64_t>(std::max<int64_t>(ns, 0));
}

uint64_t now_ns()
{
	const auto now = std::chrono::system_clock::now().time_since_epoch();
	return time_ns(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/* Called by steadyio_start() in this thread; no exception may reach the library. */
void note(void *context, const char *text)
{
	try {
		(*static_cast<const Log *>(context))(Level::INFO, text);
	} catch (...) {
		return;
	}
}

void put_length(std::string &out, size_t length)
{
	for (unsigned shift = 0; shift < 32; shift += 8)
		out += static_cast<char>(length >> shift & 0xff);
}

void put_text(std::string &out, const std::string &text)
{
	put_length(out, text.size());
	out += text;
}

/* The content of MCAP's metadata record. */
std::string metadata_record(const std::string &name, const std::string &key,
			    const std::string &value)
{
	std::string pairs;
	put_text(pairs, key);
	put_text(pairs, value);
	std::string record;
	put_text(record, name);
	put_length(record, pairs.size());
	return record + pairs;
}

/* The longest record of metadata; no longer than those of topics, for which memory is there. */
uint64_t metadata_bytes_max(const Settings &settings)
{
	return std::min(settings.record_bytes_max, METADATA_BYTES_MAX);
}

steadyio_account account_of(const steadyio_channel *channel)
{
	steadyio_account account{};
	account.struct_bytes = sizeof(account);
	check(steadyio_channel_account(channel, &account), "account");
	return account;
}

} /* namespace */

Recording::Recording(const Settings &given, const std::string &given_dir, Log given_log)
    : settings(given), dir(given_dir), log(std::move(given_log))
{
	steadyio_config config = settings.config;
	steadyio_recorder *opened = nullptr;

	config.dir = dir.c_str();
	config.control_socket = settings.control_socket.empty() ? nullptr
								: settings.control_socket.c_str();
	config.note = note;
	config.note_context = const_cast<Log *>(&log);
	check(steadyio_open(&config, &opened), "steadyio: the storage config");
	recorder.reset(opened);
	start_with_metadata();
}

Recording::~Recording()
{
	try {
		finish();
	} catch (const std::exception &error) {
		try {
			log(Level::ERROR, error.what());
		} catch (...) {
			return;
		}
	}
}

void Recording::start_with_metadata()
{
	const steadyio_pair kind{METADATA_KEY, "metadata"};
	steadyio_channel_config config{};

	config.struct_bytes = sizeof(config);
	config.topic = METADATA_TOPIC;
	config.message_encoding = "mcap";
	config.record_bytes_max = metadata_bytes_max(settings);
	config.ring_bytes = METADATA_RECORDS * std::max<uint64_t>(config.record_bytes_max, 4096);
	config.metadata = &kind;
	config.metadata_pairs = 1;
	check(steadyio_add_channel(recorder.get(), &config, &metadata), "steadyio: metadata");
	check(steadyio_start(recorder.get()), "steadyio: " + dir);
}

steadyio_channel *Recording::add_channel(const Topic &topic) const
{
	const auto found = settings.topics.find(topic.name);
	const TopicSettings own = found == settings.topics.end() ? TopicSettings{} : found->second;
	std::vector<steadyio_pair> pairs;
	steadyio_channel_config config{};
	steadyio_channel *channel = nullptr;

	if (!topic.offered_qos_profiles.empty())
		pairs.push_back({"offered_qos_profiles", topic.offered_qos_profiles.c_str()});
	if (!topic.type_hash.empty())
		pairs.push_back({"topic_type_hash", topic.type_hash.c_str()});
	if (own.is_latched.value_or(topic.is_latched))
		pairs.push_back({STEADYIO_LATCHED, "true"});
	config.struct_bytes = sizeof(config);
	config.topic = topic.name.c_str();
	config.message_encoding = topic.encoding.c_str();
	config.schema_name = topic.type.c_str();
	config.schema_encoding = topic.schema_encoding.c_str();
	config.schema_data = topic.schema.data();
	config.schema_bytes = topic.schema.size();
	config.record_bytes_max = settings.record_bytes_max_of(topic.name);
	config.period_ns = own.period_ns;
	config.ring_bytes = own.ring_bytes;
	config.metadata = pairs.data();
	config.metadata_pairs = pairs.size();
	check(steadyio_add_channel(recorder.get(), &config, &channel), "topic " + topic.name);
	return channel;
}

void Recording::add_topic(const Topic &topic)
{
	const std::lock_guard<std::mutex> lock(mutex);
	/* Made before it may be rejected: rosbag2 writes its messages all the same. */
	Channel &channel = channels[topic.name];

	if (channel.handle && !is_same_type(channel.topic, topic))
		throw std::runtime_error("topic " + topic.name + ": it was " + channel.topic.type +
					 ", and is " + topic.type +
					 " now; record it in another bag");
	if (channel.handle)
		return;
	channel.topic = topic;
	channel.handle = add_channel(topic);
	const std::string problem = export_problem(topic);
	if (!problem.empty())
		log(Level::WARNING,
		    "topic " + topic.name +
			    ": recorded, but 'steady export --ros2' rejects it: " + problem);
}

std::vector<size_t> Recording::write(const std::vector<Message> &messages)
{
	const std::lock_guard<std::mutex> lock(mutex);
	const uint64_t lost_before = settings.has_durable_writes ? lost_in_writing() : 0;
	std::vector<size_t> lost;

	for (size_t at = 0; at < messages.size(); at++) {
		if (!append(messages[at]))
			lost.push_back(at);
	}
	if (!settings.has_durable_writes || is_all_durable(lost_before))
		return lost;
	lost.resize(messages.size());
	for (size_t at = 0; at < lost.size(); at++)
		lost[at] = at;
	return lost;
}

bool Recording::append(const Message &message)
{
	const auto found = channels.find(message.topic);
	if (found == channels.end())
		throw std::runtime_error("topic " + message.topic +
					 ": a message before its create_topic()");
	Channel &channel = found->second;
	if (!channel.handle) {
		channel.rejected++;
		return false;
	}
	const int64_t sent_ns = message.sent_ns > 0 ? message.sent_ns : message.received_ns;
	const int status = steadyio_append_published(channel.handle, time_ns(message.received_ns),
						     time_ns(sent_ns), message.data, message.bytes);
	if (status == STEADYIO_OK) {
		channel.written++;
		return true;
	}
	check(status, "topic " + message.topic);
	channel.too_long += status == STEADYIO_TOO_LONG;
	log_first_loss(channel, status, message.bytes);
	return false;
}

/* The first of a topic; the end reports how many there were. */
void Recording::log_first_loss(Channel &channel, int status, size_t bytes)
{
	char trouble[512] = "";

	if (std::exchange(channel.is_loss_logged, true))
		return;
	std::string text = "topic " + channel.topic.name + ": a message of " +
			   std::to_string(bytes) + " bytes is lost: ";
	if (status == STEADYIO_TOO_LONG) {
		const uint64_t max = settings.record_bytes_max_of(channel.topic.name);
		text += "the longest may have " + std::to_string(max) +
			"; raise the topic's record_bytes_max in the storage config";
	} else if (steadyio_trouble(recorder.get(), trouble, sizeof(trouble)) > 0) {
		text += std::string("the recorder cannot write: ") + trouble;
	} else {
		text += "its ring is full; raise the topic's ring_bytes in the storage config";
	}
	log(Level::WARNING, text);
}

/* Called after a durable write, with the number of messages that were lost in writing before it. */
bool Recording::is_all_durable(uint64_t lost_before)
{
	const uint64_t timeout_ms = settings.config.loss_window_ms + DEVICE_TIMEOUT_MS;
	const int status = steadyio_flush(recorder.get(), timeout_ms);

	check(status, "durable write");
	if (status == STEADYIO_TIMEOUT)
		log(Level::ERROR,
		    "durable write: not durable after " + std::to_string(timeout_ms) + " ms");
	return status != STEADYIO_TIMEOUT && lost_in_writing() == lost_before;
}

uint64_t Recording::lost_in_writing() const
{
	uint64_t lost = 0;

	for (const auto &[name, channel] : channels) {
		if (channel.handle)
			lost += account_of(channel.handle).lost_in_writing.records;
	}
	return lost;
}

void Recording::add_metadata(const std::string &name, const std::string &key,
			     const std::string &value)
{
	const std::lock_guard<std::mutex> lock(mutex);
	const std::string record = metadata_record(name, key, value);

	if (record.size() > metadata_bytes_max(settings)) {
		log(Level::WARNING, "the bag's metadata has " + std::to_string(record.size()) +
					    " bytes, and is not in the recording: it may have " +
					    std::to_string(metadata_bytes_max(settings)));
		return;
	}
	const int status = steadyio_append(metadata, now_ns(), record.data(), record.size());

	check(status, "the bag's metadata");
	if (status != STEADYIO_OK)
		log(Level::WARNING, "the bag's metadata is not in the recording: its ring is full");
}

uint64_t Recording::device_bytes() const
{
	steadyio_stats stats{};

	stats.struct_bytes = sizeof(stats);
	check(steadyio_recorder_stats(recorder.get(), &stats), "size of the bag");
	return stats.device_bytes;
}

uint64_t Recording::messages() const
{
	const std::lock_guard<std::mutex> lock(mutex);
	uint64_t written = 0;

	for (const auto &[name, channel] : channels)
		written += channel.written;
	return written;
}

/* Logs the losses of a topic, and returns the number of its messages on the medium. */
uint64_t Recording::log_losses(const Channel &channel) const
{
	const steadyio_account account = channel.handle ? account_of(channel.handle)
							: steadyio_account{};
	const uint64_t received = account.received.records + channel.rejected;
	const uint64_t durable = account.durable.records;

	if (received == durable)
		return durable;
	const uint64_t ring_full = account.lost_ring_full.records - channel.too_long;
	log(Level::ERROR,
	    "topic " + channel.topic.name + ": " + std::to_string(received - durable) + " of " +
		    std::to_string(received) + " messages are lost: " + std::to_string(ring_full) +
		    " as its ring was full, " + std::to_string(channel.too_long) + " too long, " +
		    std::to_string(account.lost_in_writing.records) + " in writing, " +
		    std::to_string(channel.rejected) + " as the topic was rejected");
	return durable;
}

/* Called once, by the destructor: a recorder that never started has nothing to finish. */
void Recording::finish()
{
	const int status = steadyio_finish(recorder.get());
	uint64_t durable = 0;

	if (status < 0)
		log(Level::ERROR, std::string("the end of the recording: ") + steadyio_error());
	if (status == STEADYIO_FULL)
		log(Level::ERROR, dir + ": all segments are full (when_full: stop): the recording "
					"had ended before");
	for (const auto &[name, channel] : channels)
		durable += log_losses(channel);
	log(Level::INFO, dir + ": " + std::to_string(durable) + " messages of " +
				 std::to_string(channels.size()) +
				 " topics are durable; 'steady export " + dir +
				 " --ros2 DIR' makes a bag of them");
}

} /* namespace rosbag2_storage_steadyio */
