# Through the public C API: threads, processes, faults.
add_library(tutti_test_support STATIC
  support/board.cpp support/buffer.cpp support/call.cpp support/counts_call.cpp support/covering_array.cpp
  support/cut_off.cpp support/elements.cpp support/ends.cpp support/forced_turns.cpp support/host_start.cpp support/launch_ranks.cpp
  support/net_namespaces.cpp support/packet_wire.cpp support/property_space.cpp support/rdma.cpp support/reference_reduce.cpp)
tutti_takes_fake_verbs(tutti_test_support)
target_include_directories(tutti_test_support PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(tutti_test_support PUBLIC tutti_flags tutti tutti_choice fmt::fmt GTest::gtest)
set_target_properties(tutti_test_support PROPERTIES IS_TEST ON)

# multiprocess/NAME_test.cpp becomes api_NAME_test: modules have tests of their own for some of these words.
function(tutti_api_test NAME)
  tutti_test(api_${NAME}_test SOURCES multiprocess/${NAME}_test.cpp LIBS tutti_test_support LABELS multiprocess ${ARGN})
endfunction()

tutti_api_test(properties TIMEOUT 600)
tutti_api_test(kill TIMEOUT 600)
tutti_api_test(namespaces ARGS --gtest_filter=-Nightly*)
tutti_api_test(bad_wire)
tutti_api_test(pair_ways)
tutti_api_test(stop ARGS --gtest_filter=-*Nightly*)
tutti_api_test(last_call TIMEOUT 600 ARGS --gtest_filter=-*Nightly*)
tutti_api_test(random_ends TIMEOUT 600 ARGS --gtest_filter=-*Nightly*)
tutti_api_test(rest)
tutti_api_test(many_starts)
if(NOT TUTTI_SANITIZE)  # whose runtime knows one copy
  tutti_api_test(two_copies)
endif()
if(NOT TUTTI_SANITIZE)  # which has functions of the C library of its own
  tutti_api_test(start_faults)
  target_sources(api_start_faults_test PRIVATE support/failing_calls.cpp)
endif()
tutti_api_test(created_group)
tutti_api_test(rdma_memory)
tutti_api_test(rdma_faults)
tutti_api_test(outage ARGS --gtest_filter=-*Nightly*)
if(NOT TUTTI_SANITIZE)  # whose shadow is memory of the process, too, and without an end
  tutti_api_test(secret)
endif()
tutti_api_test(closed_descriptors)
tutti_api_test(start_deaths)
tutti_api_test(late_peer ARGS --gtest_filter=-Nightly*)
tutti_takes_fake_verbs(api_rdma_memory_test)
tutti_takes_fake_verbs(api_rdma_faults_test)
tutti_api_test(walk)
tutti_cuda_test(api_walk_test)
target_link_libraries(api_walk_test PRIVATE tutti_test_kernels)
target_compile_definitions(api_walk_test PRIVATE TUTTI_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
tutti_api_test(scale ARGS --gtest_filter=-Nightly*)
tutti_api_test(footprint ARGS --gtest_filter=*_2:*_8)  # the large ones are slow
foreach(test abort affinity any_source arguments barrier cancel closed_stdio nics counts counts_errors deterministic environment exit forked_child group id_listener interfaces lifecycle messages mismatch operators small_calls
        pairs pods point_to_point prefix register rights split start start_limits stream time_limits unreceived while_waiting)
  tutti_api_test(${test})
endforeach()

tutti_api_test(tune)
target_link_libraries(api_tune_test PRIVATE tutti_tune)

foreach(test gpu gpu_bits gpu_calls gpu_errors gpu_graph gpu_peers gpu_sharing gpu_staged gpu_staged_errors)
  tutti_api_test(${test})
  tutti_cuda_test(api_${test}_test)
endforeach()
foreach(test gpu_bodies gpu_counts gpu_flags gpu_flags_errors gpu_flags_graph gpu_memory gpu_messages gpu_orders gpu_unserved gpu_windows)
  tutti_api_test(${test})
  tutti_cuda_test(api_${test}_test)
  target_link_libraries(api_${test}_test PRIVATE tutti_test_kernels)
endforeach()

tutti_api_test(plan_file)
target_link_libraries(api_plan_file_test PRIVATE tutti_written_formats)
tutti_api_test(odd_files)
target_link_libraries(api_odd_files_test PRIVATE tutti_base)
tutti_api_test(place)
target_compile_definitions(api_place_test PRIVATE TUTTI_TEST_MACHINES="${CMAKE_CURRENT_SOURCE_DIR}/machines")
if(TARGET fake_nvml_system)  # ThreadSanitizer's tests have none
  tutti_api_test(gpu_place)
  tutti_cuda_test(api_gpu_place_test)
  target_compile_definitions(api_gpu_place_test PRIVATE TUTTI_FAKE_NVML_SYSTEM="$<TARGET_FILE:fake_nvml_system>")
  add_dependencies(api_gpu_place_test fake_nvml_system)
endif()

# What a launcher starts.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
add_executable(env_rank multiprocess/env_rank.cpp)
target_link_libraries(env_rank PRIVATE tutti_flags tutti)
target_compile_definitions(api_environment_test PRIVATE TUTTI_TEST_ENV_RANK="$<TARGET_FILE:env_rank>")
add_dependencies(api_environment_test env_rank)

# Real launchers, where they are installed, and a perf program under them. Their libraries are not ours to sanitize.
if(TUTTI_BUILD_PERF AND NOT TUTTI_SANITIZE)
  foreach(launcher plain torchrun mpirun hydra srun)
    add_test(NAME launcher_${launcher} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/launchers_test.py
                                       ${launcher} $<TARGET_FILE:env_rank> $<TARGET_FILE:all_reduce_perf>)
    set_tests_properties(launcher_${launcher} PROPERTIES LABELS multiprocess TIMEOUT 600 SKIP_RETURN_CODE 77)
  endforeach()
endif()

# Tools, perf programs, Python and MPI programs without standard streams.
if(TUTTI_BUILD_PERF AND TARGET tutti-topo AND NOT TUTTI_SANITIZE)
  add_test(NAME closed_stdio_programs COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/closed_stdio_test.py
                                              ${PROJECT_BINARY_DIR})
  set_tests_properties(closed_stdio_programs PROPERTIES LABELS multiprocess TIMEOUT 600 PROCESSORS 2 ENVIRONMENT TUTTI_TUNE=off)
endif()

# By RDMA over fake devices without immediates, which rdma_cm connects.
foreach(test point_to_point counts exit)
  add_test(NAME api_${test}_iwarp COMMAND api_${test}_test --gtest_filter=*rdma*)
  set_tests_properties(api_${test}_iwarp PROPERTIES LABELS multiprocess TIMEOUT 600
                       ENVIRONMENT "FAKE_VERBS_LINK=iwarp;TUTTI_TUNE=off")
endforeach()

# By RDMA in guests with emulated devices, where their packages are installed.
if(TUTTI_BUILD_PERF AND NOT TUTTI_SANITIZE)
  foreach(part one siw two faults loss three product)
    add_test(NAME guests_${part} COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/guests_test.py
                                         ${PROJECT_BINARY_DIR} ${part})
    set_tests_properties(guests_${part} PROPERTIES LABELS multiprocess TIMEOUT 1600 SKIP_RETURN_CODE 77 PROCESSORS 2)
  endforeach()
  set_tests_properties(guests_loss guests_three guests_product PROPERTIES LABELS nightly)
  set_tests_properties(guests_product PROPERTIES TIMEOUT 3600)
endif()

# The same where each process is a host of its own.
foreach(test group lifecycle split stream)
  add_test(NAME api_${test}_hosts COMMAND api_${test}_test --gtest_filter=*processes*:*pairs*:Stream.*)
endforeach()
add_test(NAME api_abort_hosts COMMAND api_abort_test --gtest_filter=States*processes*)
foreach(test abort group lifecycle split stream)
  set_tests_properties(api_${test}_hosts PROPERTIES LABELS multiprocess TIMEOUT 600
                       ENVIRONMENT "TUTTI_TEST_CYCLES=20;TUTTI_TRANSPORT=socket;TUTTI_TUNE=off")
endforeach()

# What ThreadSanitizer looks at: ranks as threads, and all ranks in one thread.
foreach(test abort counts gpu gpu_staged group lifecycle messages point_to_point prefix split start stream unreceived)
  add_test(NAME api_${test}_threads COMMAND api_${test}_test --gtest_filter=*threads*:*one_thread*)
endforeach()
add_test(NAME api_mismatch_threads COMMAND api_mismatch_test --gtest_filter=*/threads3*)
add_test(NAME api_properties_threads COMMAND api_properties_test --gtest_filter=*/threads_3_*:*/threads_4_*)
add_test(NAME api_place_threads COMMAND api_place_test --gtest_filter=Place.RanksTakeTheGpusOfARecordedMachine)
foreach(test abort counts gpu gpu_staged group lifecycle messages mismatch place point_to_point prefix properties split start stream unreceived)
  set_tests_properties(api_${test}_threads PROPERTIES LABELS threads TIMEOUT 900 ENVIRONMENT TUTTI_TEST_CYCLES=20)
endforeach()

if(TUTTI_SANITIZE)  # fewer cycles, and nothing of what follows
  set_property(TEST api_lifecycle_test APPEND PROPERTY ENVIRONMENT TUTTI_TEST_CYCLES=20)
  return()
endif()

# Minutes to hours; the slow label runs a fraction of the full product in four entries, see docs/testing.md.
add_executable(api_full_product_test multiprocess/full_product_test.cpp)
target_link_libraries(api_full_product_test PRIVATE tutti_test_support GTest::gtest_main)
tutti_precompiled(api_full_product_test)
foreach(shard 0 1 2 3)
  add_test(NAME api_full_product_${shard} COMMAND api_full_product_test)
  set_tests_properties(api_full_product_${shard} PROPERTIES LABELS slow TIMEOUT 7200
                       ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${shard}")
endforeach()

add_executable(api_huge_test multiprocess/huge_test.cpp)
target_link_libraries(api_huge_test PRIVATE tutti_test_support GTest::gtest_main)
tutti_precompiled(api_huge_test)
add_test(NAME api_huge COMMAND api_huge_test)
set_tests_properties(api_huge PROPERTIES LABELS slow TIMEOUT 7200)

add_test(NAME api_lifecycle_thousand COMMAND api_lifecycle_test --gtest_filter=*LeavesNothing*:*LeaveNothing*)
set_tests_properties(api_lifecycle_thousand PROPERTIES LABELS slow TIMEOUT 3600 ENVIRONMENT TUTTI_TEST_CYCLES=1000)

add_test(NAME api_footprint_large COMMAND api_footprint_test --gtest_filter=*_64:*_256)
set_tests_properties(api_footprint_large PROPERTIES LABELS slow TIMEOUT 3600)

add_test(NAME api_scale_large COMMAND api_scale_test --gtest_filter=Nightly*)
set_tests_properties(api_scale_large PROPERTIES LABELS nightly TIMEOUT 1800)

add_test(NAME api_forked_child_many COMMAND api_forked_child_test)
set_tests_properties(api_forked_child_many PROPERTIES LABELS nightly TIMEOUT 3600
                     ENVIRONMENT "TUTTI_TEST_KILLS=100;TUTTI_TUNE=off")
add_test(NAME api_starts_ten_thousand COMMAND api_many_starts_test)
set_tests_properties(api_starts_ten_thousand PROPERTIES LABELS nightly TIMEOUT 7200 ENVIRONMENT TUTTI_TEST_STARTS=10000)

# Between hosts.
add_test(NAME api_namespaces_product COMMAND api_namespaces_test --gtest_filter=Nightly*)
set_tests_properties(api_namespaces_product PROPERTIES LABELS nightly TIMEOUT 7200)

# Each rank stopped at any moment, on every transport.
add_test(NAME api_stop_nightly COMMAND api_stop_test --gtest_filter=*Nightly*)
set_tests_properties(api_stop_nightly PROPERTIES LABELS nightly TIMEOUT 3600)

# 500 processes that end at random, and last calls of every kind.
foreach(test last_call random_ends late_peer outage)
  add_test(NAME api_${test}_nightly COMMAND api_${test}_test --gtest_filter=*Nightly*)
  set_tests_properties(api_${test}_nightly PROPERTIES LABELS nightly TIMEOUT 3600)
endforeach()

# Programs that once showed a fault, twenty times each, where their folder is.
set(TUTTI_KNOWN_FAULTS ${PROJECT_SOURCE_DIR}/../shared/cases CACHE PATH "Folder of programs that once showed a fault; may be missing")
add_test(NAME known_faults_nightly COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/known_faults_test.py
                                           ${PROJECT_BINARY_DIR} ${TUTTI_KNOWN_FAULTS})
set_tests_properties(known_faults_nightly PROPERTIES LABELS nightly TIMEOUT 7200 PROCESSORS 2 SKIP_RETURN_CODE 77)

# Each algorithm at each number of ranks, in threads and in processes.
add_executable(api_every_algorithm_test multiprocess/every_algorithm_test.cpp)
target_link_libraries(api_every_algorithm_test PRIVATE tutti_test_support GTest::gtest_main)
tutti_precompiled(api_every_algorithm_test)
foreach(layout threads processes)
  add_test(NAME api_every_algorithm_${layout} COMMAND api_every_algorithm_test --gtest_filter=*/${layout}_*)
  set_tests_properties(api_every_algorithm_${layout} PROPERTIES LABELS nightly TIMEOUT 3600)
endforeach()
