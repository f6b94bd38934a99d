/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The file of a bag that names the directory of the segments. rosbag2 expects a file there: it asks
 * for its size, which fails for a directory. plugin.cpp uses it.
 */
#ifndef ROSBAG2_STORAGE_STEADYIO_REFERENCE_HPP
#define ROSBAG2_STORAGE_STEADYIO_REFERENCE_HPP

#include <string>

namespace rosbag2_storage_steadyio
{

/* Names a directory next to the file relative to that: the bag can be moved. */
void write_reference(const std::string &file, const std::string &dir);

/* Returns the directory. Both throw std::runtime_error. */
std::string read_reference(const std::string &file);

} /* namespace rosbag2_storage_steadyio */

#endif
