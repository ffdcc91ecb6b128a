// A plan as text, one action a line, so that a test can show what it expects.
//
//   acquire 1 x2                       a message of two items to rank 1
//   reduce *in.0 slot(1).0 -> out.0 last     * reads a contribution; slot(1), in(1), out(1), line(1) are of rank 1
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace tutti::testing {

inline std::string text(const Place& place) {
  static const char* const names[] = {"in", "out", "tmp", "slot", "in", "out", "line"};
  const std::string peer = place.where >= Where::slot ? "(" + std::to_string(place.peer) + ")" : "";
  return (place.contribution ? "*" : "") + std::string(names[static_cast<int>(place.where)]) + peer + "." +
         std::to_string(place.block);
}

inline std::string text(const Plan& plan, const Action& action) {
  static const char* const verbs[] = {"copy",    "reduce", "acquire", "commit", "peek",
                                      "release", "settle", "signal",  "wait",   "wait_descriptor"};
  std::string line = verbs[static_cast<int>(action.verb)];
  if (action.verb != Verb::copy && action.verb != Verb::reduce) {
    line += " " + std::to_string(action.peer);
    if (action.items > 0) line += " x" + std::to_string(action.items);
    return line;
  }
  for (const Place& place : plan.sources(action)) line += " " + text(place);
  line += " ->";
  for (const Place& place : plan.destinations(action)) line += " " + text(place);
  return line + (action.last ? " last" : "");
}

inline std::vector<std::string> lines(const Plan& plan) {
  std::vector<std::string> result;
  for (const Action& action : plan.actions) result.push_back(text(plan, action));
  return result;
}

}  // namespace tutti::testing
