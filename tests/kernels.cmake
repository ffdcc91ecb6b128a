# Kernel bodies on the CPU: fibers with a weak memory, and real threads for ThreadSanitizer.
add_library(tutti_test_kernels STATIC support/host_threads.cpp support/kernel_world.cpp)
target_link_libraries(tutti_test_kernels PUBLIC tutti_exec tutti_choice GTest::gtest fmt::fmt)
target_include_directories(tutti_test_kernels PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(tutti_test_kernels PROPERTIES IS_TEST ON)
target_compile_options(tutti_test_kernels PRIVATE -O1)  # each body for each type: half the time of -O2

tutti_test(device_program_test SOURCES unit/device_program_test.cpp kernels/addresses_test.cpp LIBS tutti_exec LABELS unit)

tutti_test(kernel_threads_test SOURCES kernels/threads_test.cpp LIBS tutti_test_kernels LABELS kernel)

if(NOT TUTTI_SANITIZE STREQUAL "thread")
  target_sources(tutti_test_kernels PRIVATE support/fiber.cpp support/weak_memory.cpp support/fiber_block.cpp
                                            support/host_fibers.cpp support/host_faults.cpp support/host_messages.cpp)
  tutti_test(run_plan_test SOURCES kernels/run_plan_test.cpp LIBS tutti_test_kernels LABELS kernel)
  add_test(NAME run_plan_nightly_test COMMAND run_plan_test --gtest_filter=Kernels/*)
  set_tests_properties(run_plan_nightly_test PROPERTIES LABELS nightly TIMEOUT 7200 ENVIRONMENT TUTTI_TEST_KERNELS=144)
  tutti_test(exchange_test SOURCES kernels/exchange_test.cpp LIBS tutti_test_kernels LABELS kernel)
  tutti_test(messages_test SOURCES kernels/messages_test.cpp LIBS tutti_test_kernels LABELS kernel)
  tutti_test(shots_test SOURCES kernels/shots_test.cpp LIBS tutti_test_kernels LABELS kernel)
  tutti_test(kernel_faults_test SOURCES kernels/faults_test.cpp LIBS tutti_test_kernels LABELS kernel)
endif()

# And that ThreadSanitizer sees what is to be seen.
if(TUTTI_SANITIZE STREQUAL "thread")
  add_executable(kernel_races kernels/races.cpp)
  target_link_libraries(kernel_races PRIVATE tutti_test_kernels)
  set_target_properties(kernel_races PROPERTIES IS_TEST ON)
  add_test(NAME kernel_races_none COMMAND kernel_races none)
  set_tests_properties(kernel_races_none PROPERTIES LABELS kernel TIMEOUT 600)
  foreach(fault release_relaxed acquire_relaxed no_publish_barrier)
    add_test(NAME kernel_races_${fault} COMMAND kernel_races ${fault})
    set_tests_properties(kernel_races_${fault} PROPERTIES LABELS kernel TIMEOUT 600 PASS_REGULAR_EXPRESSION "ThreadSanitizer: data race")
  endforeach()
endif()

# What the CUDA compiler made of them.
if(TUTTI_NVCC_TO_PTX)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  add_test(NAME kernel_code_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/kernel_code.py
                                         $<TARGET_FILE_DIR:tutti_kernels> ${TUTTI_NVCC_TO_PTX})
  set_tests_properties(kernel_code_test PROPERTIES LABELS kernel TIMEOUT 600)
endif()
tutti_test(kernel_image_test SOURCES unit/image_test.cpp LIBS tutti_kernels LABELS kernel)
target_compile_definitions(kernel_image_test PRIVATE TUTTI_KERNEL_IMAGES="${PROJECT_BINARY_DIR}/kernels")
