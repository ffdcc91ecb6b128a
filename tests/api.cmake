# Through the public C API: threads, processes, faults.
add_library(tutti_test_support STATIC
  support/board.cpp support/buffer.cpp support/call.cpp support/covering_array.cpp support/elements.cpp
  support/launch_ranks.cpp support/reference_reduce.cpp)
target_include_directories(tutti_test_support PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(tutti_test_support PUBLIC tutti_flags tutti fmt::fmt GTest::gtest)

# multiprocess/NAME_test.cpp becomes api_NAME_test: modules have tests of their own for some of these words.
function(tutti_api_test NAME)
  tutti_test(api_${NAME}_test SOURCES multiprocess/${NAME}_test.cpp LIBS tutti_test_support LABELS multiprocess ${ARGN})
endfunction()

tutti_api_test(properties TIMEOUT 600)
tutti_api_test(kill TIMEOUT 600)
foreach(test abort arguments deterministic environment group lifecycle mismatch point_to_point split start stop stream)
  tutti_api_test(${test})
endforeach()

# What a launcher starts.
add_executable(env_rank multiprocess/env_rank.cpp)
target_link_libraries(env_rank PRIVATE tutti_flags tutti)
target_compile_definitions(api_environment_test PRIVATE TUTTI_TEST_ENV_RANK="$<TARGET_FILE:env_rank>")
add_dependencies(api_environment_test env_rank)

# What ThreadSanitizer looks at: ranks as threads, and all ranks in one thread.
foreach(test group stream point_to_point)
  add_test(NAME api_${test}_threads COMMAND api_${test}_test --gtest_filter=*threads*:*one_thread*)
  set_tests_properties(api_${test}_threads PROPERTIES LABELS threads TIMEOUT 600)
endforeach()
