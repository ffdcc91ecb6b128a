# How bytes move: flags, call descriptors, areas, segments, descriptors, fifos; within one process and between several.
foreach(part flag call_descriptor rank_area segment adopted_memory free_memory fd_server fetch_segment
             pending_offers read_ahead send_requests link_parts)
  tutti_test(${part}_test SOURCES unit/${part}_test.cpp LIBS tutti_transport LABELS unit)
endforeach()
tutti_test(socket_test SOURCES unit/socket_test.cpp LIBS tutti_transport tutti_sim LABELS unit)
tutti_test(fifo_test SOURCES contract/fifo_test.cpp LIBS tutti_transport tutti_sim LABELS contract)
tutti_test(broken_peer_test SOURCES contract/broken_peer_test.cpp LIBS tutti_transport LABELS contract)
tutti_test(transport_test SOURCES multiprocess/transport_test.cpp LIBS tutti_transport LABELS multiprocess)
tutti_test(socket_run_test SOURCES simulated/socket_run_test.cpp LIBS tutti_choice tutti_exec tutti_sim LABELS simulated)
tutti_test(socket_end_test SOURCES simulated/socket_end_test.cpp LIBS tutti_choice tutti_exec tutti_sim LABELS simulated)

# A libibverbs without hardware, for tests that take it.
function(tutti_takes_fake_verbs)
  foreach(test ${ARGN})
    target_compile_definitions(${test} PRIVATE TUTTI_FAKE_VERBS="$<TARGET_FILE:tutti_fake_verbs>")
    add_dependencies(${test} tutti_fake_verbs)
  endforeach()
endfunction()

# A libibverbs without hardware. Its thread may outlive the last handle of it, so it stays loaded.
add_library(tutti_fake_verbs MODULE)
foreach(part cm completion control deliver device fabric faults identity memory windows peers post process queue_pair settings states)
  target_sources(tutti_fake_verbs PRIVATE support/fake_verbs/${part}.cpp)
endforeach()
target_link_libraries(tutti_fake_verbs PRIVATE tutti_flags Threads::Threads)
target_link_options(tutti_fake_verbs PRIVATE LINKER:-z,nodelete)

tutti_test(fake_verbs_test SOURCES unit/fake_verbs_test.cpp unit/fake_verbs_faults_test.cpp unit/fake_verbs_processes_test.cpp
           LIBS ${CMAKE_DL_LIBS} LABELS unit)
tutti_test(verbs_link_test SOURCES unit/verbs_link_test.cpp unit/verbs_link_memory_test.cpp unit/verbs_invite_test.cpp
                                   unit/verbs_iwarp_test.cpp unit/link_queues_test.cpp
           LIBS tutti_transport LABELS unit)
tutti_test(port_choice_test SOURCES unit/port_choice_test.cpp LIBS tutti_transport LABELS unit)
tutti_takes_fake_verbs(fake_verbs_test fifo_test verbs_link_test port_choice_test)
if(NOT TUTTI_SANITIZE)  # sanitizers allocate, and call the kernel
  tutti_test(verbs_path_test SOURCES unit/verbs_path_test.cpp LIBS tutti_transport LABELS unit)
  tutti_takes_fake_verbs(verbs_path_test)
endif()
# The same over devices without immediates; without what needs other devices: offers, and addresses that are not proven.
add_test(NAME fifo_iwarp COMMAND fifo_test --gtest_filter=*rdma*)
add_test(NAME verbs_link_iwarp COMMAND verbs_link_test
                                       --gtest_filter=VerbsLink.*:-*SegmentsAre*:*RegisteredRanges*:*AChangeBefore*:*AKeyOf*:*WritesOutside*:*AfterAStop*)
set_tests_properties(fifo_iwarp verbs_link_iwarp PROPERTIES LABELS unit TIMEOUT 600 ENVIRONMENT FAKE_VERBS_LINK=iwarp)

# What the declarations of libibverbs' binary interface are compared with, where it is installed.
find_path(IBVERBS_INCLUDE infiniband/verbs.h)
if(IBVERBS_INCLUDE)
  tutti_test(verbs_abi_test SOURCES unit/verbs_abi_test.cpp LABELS unit)
  target_include_directories(verbs_abi_test SYSTEM PRIVATE ${IBVERBS_INCLUDE})
endif()
find_path(RDMACM_INCLUDE rdma/rdma_cma.h)
if(RDMACM_INCLUDE)
  tutti_test(verbs_cm_abi_test SOURCES unit/verbs_cm_abi_test.cpp LABELS unit)
  target_include_directories(verbs_cm_abi_test SYSTEM PRIVATE ${RDMACM_INCLUDE})
endif()
