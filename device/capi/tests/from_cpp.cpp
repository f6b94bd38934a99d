/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What examples/record.c records, without its pace, from C++: the header compiles there, its names
 * are C's, and the library runs below a C++ program.
 *
 *	from_cpp DIR STEPS
 */
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <steadyio.h>
#include <steadyio_store.h>

namespace
{

struct Close {
	void operator()(steadyio_recorder *recorder) const
	{
		steadyio_close(recorder);
	}
};

void check(int status)
{
	if (status != STEADYIO_OK)
		throw std::runtime_error(steadyio_error());
}

steadyio_channel *add(steadyio_recorder *recorder, const char *topic, const char *schema)
{
	steadyio_channel_config config{};
	steadyio_channel *channel = nullptr;

	config.struct_bytes = sizeof(config);
	config.topic = topic;
	config.schema_name = schema;
	config.record_bytes_max = 512;
	check(steadyio_add_channel(recorder, &config, &channel));
	return channel;
}

void record(steadyio_recorder *recorder, unsigned steps)
{
	steadyio_channel *joint = add(recorder, "/joint", "Joint");
	steadyio_channel *frames = add(recorder, "/frames", nullptr);

	check(steadyio_start(recorder));
	for (unsigned step = 0; step < steps; step++) {
		char text[64];
		std::snprintf(text, sizeof(text), "{\"step\":%u,\"angle\":%.3f}", step,
			      step / 1000.0);
		const std::string frame(512, static_cast<char>(step));
		check(steadyio_append(joint, step, text, std::strlen(text)));
		check(steadyio_append(frames, step, frame.data(), frame.size()));
	}
	check(steadyio_finish(recorder));
	const std::pair<const char *, steadyio_channel *> both[] = {{"/joint", joint},
								    {"/frames", frames}};
	for (const auto &[topic, channel] : both) {
		steadyio_account account{};
		account.struct_bytes = sizeof(account);
		check(steadyio_channel_account(channel, &account));
		std::cout << topic << ": received " << account.received.records << ", durable "
			  << account.durable.records << ", lost "
			  << account.lost_ring_full.records + account.lost_in_writing.records
			  << "\n";
	}
}

} /* namespace */

int main(int argc, char **argv)
{
	steadyio_config config{};
	steadyio_recorder *opened = nullptr;

	if (argc != 3)
		return 2;
	config.struct_bytes = sizeof(config);
	config.dir = argv[1];
	config.segment_bytes = 8 << 20;
	config.keep = 2;
	try {
		check(steadyio_open(&config, &opened));
		const std::unique_ptr<steadyio_recorder, Close> recorder(opened);
		record(recorder.get(), static_cast<unsigned>(std::stoul(argv[2])));
	} catch (const std::exception &error) {
		std::cerr << "from_cpp: " << error.what() << "\n";
		return 1;
	}
}
