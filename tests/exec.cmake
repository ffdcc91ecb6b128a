tutti_test(ops_test SOURCES unit/ops_test.cpp LIBS tutti_exec LABELS unit)
tutti_test(run_test SOURCES unit/run_test.cpp LIBS tutti_exec LABELS unit)
tutti_test(run_parts_test SOURCES unit/bound_plan_test.cpp unit/channel_test.cpp unit/direct_pass_test.cpp unit/invite_test.cpp unit/pass_loops_test.cpp unit/passes_test.cpp LIBS tutti_exec LABELS unit)

# One thread over much data: ThreadSanitizer sees the same passes in the calls of many.
if(NOT TUTTI_SANITIZE STREQUAL "thread")
  tutti_test(reduce_test SOURCES unit/reduce_test.cpp LIBS tutti_exec LABELS unit)
endif()

tutti_test(inviting_test SOURCES unit/inviting_test.cpp LIBS tutti_exec tutti_choice LABELS unit)

tutti_test(average_test SOURCES unit/average_test.cpp LIBS tutti_exec tutti_choice LABELS unit)
