// What callers reach through Context::ops.
#pragma once

#include "transport/verbs/abi.h"

namespace tutti::testing::fake_verbs {

int post_send(verbs::Qp* qp, verbs::SendWork* chain, verbs::SendWork** bad);
int post_recv(verbs::Qp* qp, verbs::ReceiveWork* chain, verbs::ReceiveWork** bad);
verbs::Window* alloc_mw(verbs::Pd* pd, verbs::WindowType type);
int dealloc_mw(verbs::Window* window);
int poll_cq(verbs::Cq* cq, int entries, verbs::Completion* completions);
int req_notify_cq(verbs::Cq* cq, int solicited_only);

}  // namespace tutti::testing::fake_verbs
