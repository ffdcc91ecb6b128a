// Which changes of a queue pair's state are allowed, and what each needs.
#pragma once

#include "objects.h"

namespace tutti::testing::fake_verbs {

/// 0 or EINVAL.
int check_change(const QueuePair& pair, verbs::QpState from, verbs::QpState to, const verbs::QpAttributes& attributes,
                 int mask);
/// Takes over what the mask names, but for the state.
void take(verbs::QpAttributes& own, const verbs::QpAttributes& attributes, int mask);

}  // namespace tutti::testing::fake_verbs
