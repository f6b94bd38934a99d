/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Does with integrations/rosbag2 what its plugin does, without ROS. test_plugin_recording.py runs it.
 *
 *	drive CONFIG|"" DIR
 *
 * Lines of standard input are commands, with tabs between words, and texts in hexadecimal. Their
 * results, logs and errors are lines of standard output. The end of the input ends the recording.
 */
#include <cstdint>
#include <deque>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "recording.hpp"
#include "reference.hpp"

using namespace rosbag2_storage_steadyio;

namespace
{

struct Data {
	std::string topic;
	int64_t received_ns;
	int64_t sent_ns;
	std::string bytes;
};

const char *const LEVELS[] = {"info", "warning", "failure"};

void log_line(Level level, const std::string &text)
{
	std::cout << LEVELS[static_cast<size_t>(level)] << ": " << text << std::endl;
}

std::string from_hex(const std::string &digits)
{
	std::string bytes;

	for (size_t at = 0; at + 1 < digits.size(); at += 2)
		bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
	return bytes;
}

std::vector<std::string> words_of(const std::string &line)
{
	std::istringstream in(line);
	std::vector<std::string> words;
	std::string word;

	while (std::getline(in, word, '\t'))
		words.push_back(word);
	return words;
}

Topic topic_of(const std::vector<std::string> &words)
{
	Topic topic;

	topic.name = words.at(1);
	topic.type = words.at(2);
	topic.encoding = words.at(3);
	topic.schema_encoding = words.at(4);
	topic.schema = from_hex(words.at(5));
	topic.offered_qos_profiles = from_hex(words.at(6));
	topic.type_hash = words.at(7);
	topic.is_latched = words.at(8) == "yes";
	return topic;
}

void write(Recording &recording, const std::deque<Data> &batch)
{
	std::vector<Message> messages;

	for (const Data &data : batch)
		messages.push_back({data.topic, data.received_ns, data.sent_ns, data.bytes.data(),
				    data.bytes.size()});
	std::string positions;
	for (const size_t at : recording.write(messages))
		positions += " " + std::to_string(at);
	std::cout << "lost:" << positions << std::endl;
}

void run(Recording &recording, const std::vector<std::string> &words, std::deque<Data> &batch)
{
	const std::string &command = words.at(0);

	if (command == "topic") {
		recording.add_topic(topic_of(words));
	} else if (command == "message") {
		batch.push_back({words.at(1), std::stoll(words.at(2)), std::stoll(words.at(3)),
				 from_hex(words.at(4))});
	} else if (command == "write") {
		write(recording, batch);
		batch.clear();
	} else if (command == "metadata") {
		recording.add_metadata(words.at(1), words.at(2), from_hex(words.at(3)));
	} else if (command == "counts") {
		std::cout << "counts: " << recording.messages() << " "
			  << (recording.device_bytes() > 0 ? "some" : "no") << " bytes"
			  << std::endl;
	} else if (command == "reference") {
		write_reference(words.at(1), words.at(2));
		std::cout << "reference: " << read_reference(words.at(3)) << std::endl;
	} else {
		throw std::runtime_error(command + ": an unknown command");
	}
}

} /* namespace */

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	try {
		const Settings settings = read_settings(argv[1]);
		Recording recording(settings, settings.dir.empty() ? argv[2] : settings.dir,
				    log_line);
		std::deque<Data> batch;
		std::string line;
		while (std::getline(std::cin, line)) {
			try {
				run(recording, words_of(line), batch);
			} catch (const std::exception &error) {
				std::cout << "error: " << error.what() << std::endl;
			}
		}
	} catch (const std::exception &error) {
		std::cout << "error: " << error.what() << std::endl;
		return 1;
	}
}
