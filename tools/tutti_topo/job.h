// tutti-topo --job and --job-file: a job instead of a machine.
#pragma once

#include <string>

#include "base/error.h"
#include "topology/graph/topology.h"
#include "topology/search/job.h"

struct JobOptions {
  bool planned = false;  ///< --job
  int hosts = 1;
  int ranks_per_host = 0;  ///< 0: one for each GPU, or NUMA node if there are none
  std::string order = "block";
  std::string ring;  ///< empty: as a communicator finds it
  std::string file;  ///< --job-file
};

/// The job that a communicator would make of these hosts. Errors: invalid_argument.
tutti::Result<tutti::topology::Job> planned_job(const JobOptions& options, const tutti::topology::Topology& machine);

/// What TUTTI_JOB_DUMP_FILE has written. Errors: those of a file that cannot be read; invalid_argument with the line,
/// or the place in the file.
tutti::Result<tutti::topology::Job> read_job(const std::string& path);
