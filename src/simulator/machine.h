// Machines as people describe them: "nodes:4x8,450GB/s,1us,net=50GB/s".
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "simulator/topology.h"

namespace tutti::simulator {

struct Machine {
  std::shared_ptr<const Tree> tree;  ///< one of the two
  std::shared_ptr<const Torus> torus;
  double in_switch = 0;  ///< bytes on a link for each byte of a switch's sums; 0: switches do not add up
  std::string text;      ///< all that it is, defaults included

  const Topology& topology() const { return tree ? static_cast<const Topology&>(*tree) : *torus; }
};

/// KIND:[SIZES,]WORD,WORD… where a word is a rate, a time or name=value:
///
///   switch:N          rate, time; in_switch=rate (of sums that the switch makes)
///   nodes:NxG         rate, time inside a node of G; net=rate and rails=R of its links to the others,
///   net_latency=time;
///                     pod=K nodes below a switch, taper=T, pod_latency=time
///   fattree:AxBx…xR   rate, time; taper=T (of each level's links against those below), level_latency=time
///   torus:AxBx…       rate, time of a link
///
/// for all: efficiency=share of a link's rate that messages get. `ranks`: how many there must be, 0 for as many as
/// there are; a switch takes its number from it. Errors: invalid_argument, naming the word that is wrong.
Result<Machine> parse_machine(std::string_view spec, int ranks);

}  // namespace tutti::simulator
