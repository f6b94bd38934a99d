/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reference.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace rosbag2_storage_steadyio
{

namespace fs = std::filesystem;

void write_reference(const std::string &file, const std::string &dir)
{
	const fs::path folder = fs::absolute(file).parent_path();
	const fs::path named = fs::absolute(dir);
	const bool is_next_to_it = named.parent_path() == folder;
	std::ofstream out(file);

	out << (is_next_to_it ? named.filename() : named).string() << '\n';
	if (!out.flush())
		throw std::runtime_error(file + ": cannot be written: is the file system full?");
}

std::string read_reference(const std::string &file)
{
	std::ifstream in(file);
	std::string line;

	if (!std::getline(in, line) || line.empty())
		throw std::runtime_error(file + ": names no directory of segments: 'steady info' "
						"shows which directory is a recording");
	return (fs::path(file).parent_path() / line).string();
}

} /* namespace rosbag2_storage_steadyio */
