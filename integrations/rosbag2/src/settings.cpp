/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "settings.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace rosbag2_storage_steadyio
{

namespace
{

constexpr uint32_t LATE_CHANNELS = 256;
/* A definition of ROS has the comments of its .msg file. Topics of a type share it. */
constexpr uint64_t LATE_DEFINITION_BYTES = 2 << 20;

/* A key of the file with its value. */
struct Entry {
	std::string path;
	std::string key;
	YAML::Node node;

	[[noreturn]] void fail(const std::string &reason) const
	{
		const std::string line = std::to_string(node.Mark().line + 1);
		const std::string value = node.IsScalar() ? " = " + node.Scalar() : "";
		throw std::runtime_error(path + ":" + line + ": " + key + value + ": " + reason);
	}

	template <typename T> T as(const std::string &kind) const
	{
		try {
			return node.as<T>();
		} catch (const YAML::Exception &) {
			fail("must be " + kind);
		}
	}

	uint64_t number(uint64_t max) const
	{
		const uint64_t value = as<uint64_t>("a whole number, 0 or more");
		if (value > max)
			fail("must be at most " + std::to_string(max));
		return value;
	}
};

template <typename S> using Keys = std::map<std::string, std::function<void(S &, const Entry &)>>;

template <typename S> std::string names_of(const Keys<S> &keys)
{
	std::string names;
	for (const auto &[name, set] : keys)
		names += (names.empty() ? "" : ", ") + name;
	return names;
}

/* Sets each key of a map once. */
template <typename S> void set_all(S &settings, const Keys<S> &keys, const Entry &map)
{
	if (map.node.IsNull())
		return;
	if (!map.node.IsMap())
		map.fail("must have lines such as \"KEY: VALUE\"; KEY is one of " + names_of(keys));
	std::set<std::string> seen;
	for (const auto &pair : map.node) {
		const std::string name = pair.first.IsScalar() ? pair.first.Scalar() : "";
		const std::string prefix = map.key.empty() ? "" : map.key + ": ";
		const Entry entry{map.path, prefix + name, pair.second};
		const auto key = keys.find(name);
		if (key == keys.end())
			entry.fail("this key is unknown; the keys are " + names_of(keys));
		if (!seen.insert(name).second)
			entry.fail("the key is there twice; remove one");
		key->second(settings, entry);
	}
}

template <typename S, typename T> auto number(T S::*member)
{
	return [member](S &settings, const Entry &entry) {
		settings.*member = static_cast<T>(entry.number(std::numeric_limits<T>::max()));
	};
}

template <typename T> auto configured(T steadyio_config::*member)
{
	return [member](Settings &settings, const Entry &entry) {
		number(member)(settings.config, entry);
	};
}

/* The position of the word among those allowed is the value. */
auto choice(uint32_t steadyio_config::*member, const std::vector<std::string> &words)
{
	return [member, words](Settings &settings, const Entry &entry) {
		const std::string word = entry.as<std::string>("a word");
		const auto found = std::find(words.begin(), words.end(), word);
		if (found == words.end()) {
			std::string allowed;
			for (const std::string &one : words)
				allowed += (allowed.empty() ? "" : " or ") + one;
			entry.fail("must be " + allowed);
		}
		settings.config.*member = static_cast<uint32_t>(found - words.begin());
	};
}

auto text(std::string Settings::*member)
{
	return [member](Settings &settings, const Entry &entry) {
		const std::string value = entry.as<std::string>("a path");
		if (!entry.node.IsScalar() || value.empty())
			entry.fail("must be a path; omit the key for the default");
		settings.*member = value;
	};
}

bool yes_or_no(const Entry &entry)
{
	return entry.as<bool>("true or false");
}

/* A flag that is on while the key's value is this one. */
auto flag(uint32_t bit, bool value)
{
	return [bit, value](Settings &settings, const Entry &entry) {
		if (yes_or_no(entry) == value)
			settings.config.flags |= bit;
	};
}

const Keys<TopicSettings> TOPIC_KEYS = {
	{"latched",
	 [](TopicSettings &topic, const Entry &entry) { topic.is_latched = yes_or_no(entry); }},
	{"period_ns", number(&TopicSettings::period_ns)},
	{"record_bytes_max", number(&TopicSettings::record_bytes_max)},
	{"ring_bytes", number(&TopicSettings::ring_bytes)},
};

void set_topics(Settings &settings, const Entry &entry)
{
	if (!entry.node.IsMap())
		entry.fail("must have a line \"/TOPIC:\" for each topic, and its keys below");
	for (const auto &pair : entry.node) {
		const std::string name = pair.first.IsScalar() ? pair.first.Scalar() : "";
		const Entry topic{entry.path, entry.key + ": " + name, pair.second};
		if (name.empty() || name[0] != '/')
			topic.fail("the name of a topic must begin with '/'");
		if (settings.topics.count(name) > 0)
			topic.fail("the topic is there twice; remove one");
		set_all(settings.topics[name], TOPIC_KEYS, topic);
	}
}

void set_writer_cpu(Settings &settings, const Entry &entry)
{
	const auto set = configured(&steadyio_config::writer_cpu);

	set(settings, entry);
	settings.config.flags |= STEADYIO_WRITER_CPU;
}

/* `keep_by: ms` of steadyio.h needs all topics before the start: ROS finds them later. */
const Keys<Settings> KEYS = {
	{"compression", choice(&steadyio_config::compression, {"none", "lz4", "zstd"})},
	{"control_socket", text(&Settings::control_socket)},
	{"dir", text(&Settings::dir)},
	{"discard_damaged", flag(STEADYIO_DISCARD_DAMAGED, true)},
	{"durable_writes",
	 [](Settings &all, const Entry &entry) { all.has_durable_writes = yes_or_no(entry); }},
	{"engine", choice(&steadyio_config::engine, {"best", "io_uring", "pwrite"})},
	{"keep", configured(&steadyio_config::keep)},
	{"keep_by", choice(&steadyio_config::keep_by, {"segments", "bytes", "free_bytes"})},
	{"late_channels", configured(&steadyio_config::late_channels)},
	{"late_definition_bytes", configured(&steadyio_config::late_definition_bytes)},
	{"lock_memory", flag(STEADYIO_NO_LOCK, false)},
	{"longest_record_bytes", configured(&steadyio_config::longest_record_bytes)},
	{"loss_window_ms", configured(&steadyio_config::loss_window_ms)},
	{"on_failure", choice(&steadyio_config::on_failure, {"wait", "exit"})},
	{"record_bytes_max", number(&Settings::record_bytes_max)},
	{"segment_bytes", configured(&steadyio_config::segment_bytes)},
	{"topics", set_topics},
	{"unit_bytes", configured(&steadyio_config::unit_bytes)},
	{"when_full", choice(&steadyio_config::when_full, {"recycle", "stop"})},
	{"writer_cpu", set_writer_cpu},
	{"writer_fifo_priority", configured(&steadyio_config::writer_fifo_priority)},
	{"writer_io_class", configured(&steadyio_config::writer_io_class)},
	{"writer_io_level", configured(&steadyio_config::writer_io_level)},
};

/* The recorder needs memory for the longest message of any topic. */
void fit_longest_record(Settings &settings)
{
	uint64_t &longest = settings.config.longest_record_bytes;
	longest = std::max(longest, settings.record_bytes_max);
	for (const auto &[name, topic] : settings.topics)
		longest = std::max(longest, topic.record_bytes_max);
}

} /* namespace */

Settings::Settings()
{
	config.struct_bytes = sizeof(config);
	config.profile = "ros2";
	config.late_channels = LATE_CHANNELS;
	config.late_definition_bytes = LATE_DEFINITION_BYTES;
}

uint64_t Settings::record_bytes_max_of(const std::string &topic) const
{
	const auto found = topics.find(topic);
	const uint64_t own = found == topics.end() ? 0 : found->second.record_bytes_max;
	return own > 0 ? own : record_bytes_max;
}

Settings read_settings(const std::string &path)
{
	Settings settings;
	if (!path.empty()) {
		YAML::Node file;
		try {
			file = YAML::LoadFile(path);
		} catch (const YAML::BadFile &) {
			throw std::runtime_error(path + ": cannot be read: name a YAML file with "
							"--storage-config-file");
		} catch (const YAML::Exception &error) {
			throw std::runtime_error(path + ": is not YAML: " + error.what());
		}
		set_all(settings, KEYS, Entry{path, "", file});
	}
	fit_longest_record(settings);
	return settings;
}

} /* namespace rosbag2_storage_steadyio */
