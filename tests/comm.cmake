# The meeting point: ids, handshake, bootstrap; on loopback sockets, and on a simulated network.
add_library(tutti_sim STATIC support/sim_system.cpp)
target_link_libraries(tutti_sim PUBLIC tutti_base)
target_include_directories(tutti_sim PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})

tutti_test(meeting_test SOURCES unit/unique_id_test.cpp unit/handshake_test.cpp unit/bootstrap_messages_test.cpp
                                unit/roster_test.cpp unit/wire_test.cpp unit/bootstrap_tree_test.cpp
                                unit/failed_tries_test.cpp unit/exchange_round_test.cpp unit/failed_start_test.cpp
                                unit/local_excuses_test.cpp unit/start_report_test.cpp
                       LIBS tutti_bootstrap tutti_sim LABELS unit)
tutti_test(bootstrap_test SOURCES unit/bootstrap_test.cpp unit/bootstrap_acceptor_test.cpp LIBS tutti_bootstrap LABELS unit)
tutti_test(sim_system_test SOURCES unit/sim_system_test.cpp LIBS tutti_sim LABELS unit)
tutti_test(simulated_bootstrap_test SOURCES simulated/bootstrap_test.cpp simulated/bootstrap_failures_test.cpp simulated/bootstrap_world.cpp
                                    LIBS tutti_bootstrap tutti_sim LABELS simulated TIMEOUT 600)
tutti_test(simulated_scale_test SOURCES simulated/bootstrap_scale_test.cpp LIBS tutti_bootstrap tutti_sim fmt::fmt
           LABELS simulated ARGS --gtest_filter=Ranks/*)
add_test(NAME simulated_scale_large COMMAND simulated_scale_test --gtest_filter=Nightly/*)
set_tests_properties(simulated_scale_large PROPERTIES LABELS nightly TIMEOUT 600)
tutti_fuzz(frames LIBS tutti_bootstrap CHANGES 20000)
tutti_fuzz(conversation LIBS tutti_bootstrap tutti_sim CHANGES 4000)
tutti_fuzz(launch LIBS tutti_launch CHANGES 20000)
tutti_fuzz(pmi LIBS tutti_launch CHANGES 20000)

# Prints what an attack costs a start; here only whether starts under attack come about.
add_executable(bootstrap_attack unit/bootstrap_attack.cpp)
target_link_libraries(bootstrap_attack PRIVATE tutti_flags tutti_bootstrap)
set_target_properties(bootstrap_attack PROPERTIES IS_TEST ON)
add_test(NAME bootstrap_attack COMMAND bootstrap_attack 64 300)
set_tests_properties(bootstrap_attack PROPERTIES LABELS nightly TIMEOUT 600)
