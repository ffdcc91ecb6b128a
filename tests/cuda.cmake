# The driver of CUDA, as a fake in memory that runs kernels on the CPU; and what of it knows no communicator.
add_library(fake_cuda MODULE support/fake_cuda.cpp support/fake_cuda_memory.cpp support/fake_cuda_access.cpp support/fake_cuda_streams.cpp
                             support/fake_cuda_kernels.cpp support/fake_cuda_virtual.cpp support/plan_kernel.cpp)
target_link_libraries(fake_cuda PRIVATE tutti_exec Threads::Threads)
target_include_directories(fake_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(fake_cuda PROPERTIES IS_TEST ON)
# Thread data beside that of the program: sanitizers stumble over what the loader allocates and frees for it.
target_compile_options(fake_cuda PRIVATE -ftls-model=initial-exec)

# What of NCCL a perf program calls, on that driver.
add_library(fake_nccl MODULE support/fake_nccl.cpp)
target_link_libraries(fake_nccl PRIVATE tutti_exec ${CMAKE_DL_LIBS})
target_include_directories(fake_nccl PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(fake_nccl PROPERTIES IS_TEST ON)
target_compile_options(fake_nccl PRIVATE -ftls-model=initial-exec)

function(tutti_cuda_test NAME)
  target_compile_definitions(${NAME} PRIVATE TUTTI_FAKE_CUDA="$<TARGET_FILE:fake_cuda>")
  target_link_libraries(${NAME} PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(${NAME} fake_cuda)
endfunction()

tutti_test(cuda_driver_test SOURCES unit/cuda_driver_test.cpp LIBS tutti_cuda LABELS unit)
tutti_cuda_test(cuda_driver_test)

tutti_test(call_writer_test SOURCES unit/call_writer_test.cpp LIBS tutti_cuda LABELS unit)
tutti_cuda_test(call_writer_test)

tutti_test(cuda_parts_test SOURCES unit/cuda_parts_test.cpp LIBS tutti_cuda LABELS unit)
tutti_cuda_test(cuda_parts_test)

tutti_test(quiet_test SOURCES unit/quiet_test.cpp LIBS tutti_cuda LABELS unit)

tutti_test(cuda_engine_test SOURCES unit/cuda_engine_test.cpp LIBS tutti_cuda tutti_kernels tutti_test_kernels tutti_test_support LABELS unit)
tutti_cuda_test(cuda_engine_test)

tutti_test(launch_arrivals_test SOURCES unit/launch_arrivals_test.cpp LIBS tutti_gpu LABELS unit)

tutti_test(path_history_test SOURCES unit/path_history_test.cpp LIBS tutti_gpu LABELS unit)

# Where there is a CUDA toolkit, what we declare of the driver is compared with what it declares.
find_path(TUTTI_CUDA_HEADERS cudaTypedefs.h PATHS /usr/local/cuda/include $ENV{CUDA_HOME}/include DOC "Folder of cuda.h")
if(TUTTI_CUDA_HEADERS)
  tutti_test(cuda_header_test SOURCES unit/cuda_header_test.cpp LIBS tutti_cuda LABELS unit)
  target_include_directories(cuda_header_test SYSTEM PRIVATE ${TUTTI_CUDA_HEADERS})
endif()
