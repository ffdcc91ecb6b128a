# The perf programs as tests: correct results through every path of the harness, and detection of wrong ones.

# perf_test(NAME PROGRAM ARGUMENTS...): must end with exit status 0.
function(perf_test NAME PROGRAM)
  add_test(NAME perf_${NAME} COMMAND ${PROGRAM}_perf ${ARGN})
  set_tests_properties(perf_${NAME} PROPERTIES LABELS multiprocess TIMEOUT 600 ENVIRONMENT TUTTI_TUNE=off)
endfunction()

# All features of each collective, with small data: sizes from zero to beyond the small-call limits.
set(quick -n 2 -w 1 -c 1 -T 540)
foreach(collective all_reduce all_gather reduce_scatter broadcast alltoall reduce gather scatter scan ex_scan sendrecv)
  perf_test(${collective} ${collective} --procs 2 -b 8 -e 1M -f 8 ${quick})
  perf_test(${collective}_types ${collective} --procs 3 -b 40 -e 40K -d all -o all -r all -f 32 ${quick} --verify)
endforeach()

foreach(collective all_gather_v reduce_scatter_v all_to_all_v)
  perf_test(${collective} ${collective} --procs 3 -b 40 -e 1M -f 64 ${quick} --verify)
endforeach()

# Every type, operator and root with many numbers of ranks, and the sizes usually measured.
set(sweep -n 1 -w 0 -c 1 -T 1500)
foreach(collective all_reduce all_gather reduce_scatter broadcast alltoall reduce gather scatter scan ex_scan sendrecv)
  set(added)
  foreach(ranks 1 2 3 5 7 8)
    perf_test(${collective}_sweep_${ranks} ${collective} --procs ${ranks} -d all -o all -r all -b 8 -e 16M -f 16 ${sweep})
    list(APPEND added perf_${collective}_sweep_${ranks})
  endforeach()
  perf_test(${collective}_sweep_threads ${collective} -t 4 -d all -o all -r all -b 8 -e 16M -f 16 ${sweep})
  perf_test(${collective}_sweep_large ${collective} --procs 2 -b 8 -e 256M -f 4 ${sweep})
  perf_test(${collective}_sweep_large_threads ${collective} -t 4 -b 8 -e 256M -f 4 ${sweep})
  list(APPEND added perf_${collective}_sweep_threads perf_${collective}_sweep_large perf_${collective}_sweep_large_threads)
  set_tests_properties(${added} PROPERTIES LABELS slow TIMEOUT 1800)
endforeach()

perf_test(algorithms all_reduce --procs 3 -b 8 -e 64K -f 64 ${quick} --algo ring,double_tree)
set_tests_properties(perf_algorithms PROPERTIES PASS_REGULAR_EXPRESSION "ring .* us +[0-9.]+ us +[0-9.]+ us +0  mapped")
perf_test(algorithms_unknown all_reduce --procs 2 -b 8 -e 64K -f 64 ${quick} --algo no_such)
set_tests_properties(perf_algorithms_unknown PROPERTIES WILL_FAIL ON)
perf_test(threads all_reduce -t 3 -b 8 -e 64K -f 8 ${quick})
perf_test(threads_and_processes all_gather --procs 2 -t 2 -p 1 -b 8 -e 64K -f 8 ${quick})
perf_test(stream all_reduce --procs 2 -z 0 -m 3 -b 8 -e 64K -f 8 ${quick})
perf_test(malloc all_reduce --procs 2 --buffers malloc -b 8 -e 1M -f 8 ${quick})
perf_test(mixed_memory alltoall --procs 2 --buffers mixed -b 8 -e 1M -f 8 ${quick})
perf_test(one_rank all_reduce --procs 1 -b 8 -e 64K -f 8 ${quick})
perf_test(seven_ranks reduce_scatter --procs 7 -b 8 -e 64K -f 8 ${quick} --no-pin)
perf_test(gradients gradients --procs 2 --dtype all -n 1 -w 0)
perf_test(help all_reduce --help)

# A wrong element must show in the table and in the exit status, and so must a wrong command line.
set(damaged "Out of bounds values : [1-9]")
perf_test(plant all_reduce --procs 2 -b 1K -e 1K -n 1 --plant 1)
perf_test(plant_in_place reduce --procs 2 -r 1 -b 1K -e 1K -n 1 --plant 3)
set_tests_properties(perf_plant perf_plant_in_place PROPERTIES PASS_REGULAR_EXPRESSION ${damaged})
perf_test(plant_exit all_reduce --procs 2 -b 1K -e 1K -n 1 --plant 1)
perf_test(bad_option all_reduce --no-such-option)
perf_test(bad_size all_reduce -b 12parsecs)
set_tests_properties(perf_plant_exit perf_bad_option perf_bad_size PROPERTIES WILL_FAIL ON)

# The comparison with other libraries, without these: it builds, runs and reads its measurements.
find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_FOUND AND NOT TUTTI_SANITIZE)
  add_test(NAME perf_compare COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/compare/compare --tutti $<TARGET_FILE:tutti>
                                     --libraries tutti,tutti-malloc,limits --rounds 2 --ms 2 --sizes 8,32K)
  set_tests_properties(perf_compare PROPERTIES LABELS multiprocess TIMEOUT 600)
endif()

# On which core a rank runs, by what launchers say.
if(Python3_FOUND)
  add_test(NAME perf_pin COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/pin_test.py $<TARGET_FILE:all_reduce_perf>)
  set_tests_properties(perf_pin PROPERTIES LABELS multiprocess TIMEOUT 600 ENVIRONMENT TUTTI_TUNE=off)
endif()

# perf/choice: checks that it measures and counts, not its result on a loaded machine.
if(Python3_FOUND AND NOT TUTTI_SANITIZE)
  add_test(NAME perf_choice COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/choice/choice --quick --perf $<TARGET_FILE_DIR:all_reduce_perf>
                                    --collectives broadcast --buffers malloc --end 64K --iterations 1)
  set_tests_properties(perf_choice PROPERTIES LABELS multiprocess TIMEOUT 600 ENVIRONMENT TUTTI_TUNE=off
                                              PASS_REGULAR_EXPRESSION "all . [1-9][0-9]* . [0-9.]+ ")
endif()

# Device memory, on the fake driver: threads share its GPU, processes are host-staged.
if(TARGET fake_cuda)
  set(fake "TUTTI_CUDA_LIBRARY=$<TARGET_FILE:fake_cuda>" "TUTTI_CUDA_KERNELS=$<TARGET_FILE:fake_cuda>")
  foreach(collective all_reduce all_gather alltoall scatter)
    perf_test(${collective}_gpu ${collective} --memory device -t 4 -b 8 -e 64K -f 16 ${quick} --verify)
    set_property(TEST perf_${collective}_gpu APPEND PROPERTY ENVIRONMENT ${fake})
  endforeach()
  foreach(collective all_reduce alltoall sendrecv)
    perf_test(${collective}_gpu_processes ${collective} --memory device --procs 2 -b 8 -e 64K -f 16 ${quick} --verify)
    set_property(TEST perf_${collective}_gpu_processes APPEND PROPERTY ENVIRONMENT ${fake})
  endforeach()
  foreach(collective all_gather_v reduce_scatter_v all_to_all_v)
    perf_test(${collective}_gpu ${collective} --memory device --procs 2 -t 2 -b 8 -e 64K -f 16 ${quick} --verify)
    set_property(TEST perf_${collective}_gpu APPEND PROPERTY ENVIRONMENT ${fake})
  endforeach()
  perf_test(stream_gpu all_reduce --memory device -t 2 -z 0 -m 3 -b 8 -e 64K -f 16 ${quick})
  perf_test(plant_gpu all_reduce --memory device -t 2 -b 1K -e 1K -n 1 --plant 1)
  set_property(TEST perf_stream_gpu perf_plant_gpu APPEND PROPERTY ENVIRONMENT ${fake})
  set_tests_properties(perf_plant_gpu PROPERTIES PASS_REGULAR_EXPRESSION ${damaged})
  # Comparison with a fake NCCL: sums are correct, queued and in a graph, and errors are reported.
  set(nccl nccl --nccl $<TARGET_FILE:fake_nccl>)
  set(few -t 3 -b 8,8K --queued 3 -n 2)
  add_test(NAME perf_limits_queued COMMAND gpu_limits call --streams ${few})
  add_test(NAME perf_limits_graph COMMAND gpu_limits call --streams ${few} --graph)
  add_test(NAME perf_limits_nccl_queued COMMAND gpu_limits ${nccl} ${few})
  add_test(NAME perf_limits_nccl_graph COMMAND gpu_limits ${nccl} ${few} --graph)
  foreach(trouble old refused wrong)
    add_test(NAME perf_limits_nccl_${trouble} COMMAND gpu_limits ${nccl} ${few})
  endforeach()
  set(limits_tests perf_limits_queued perf_limits_graph perf_limits_nccl_queued perf_limits_nccl_graph perf_limits_nccl_old
                   perf_limits_nccl_refused perf_limits_nccl_wrong)
  if(Python3_FOUND AND NOT TUTTI_SANITIZE)
    set(limits ${CMAKE_CURRENT_SOURCE_DIR}/gpu/limits --perf $<TARGET_FILE_DIR:gpu_limits> --ranks 2 --rounds 1 --sizes 8,64
               --nccl $<TARGET_FILE:fake_nccl>)
    add_test(NAME perf_limits_table COMMAND Python3::Interpreter ${limits} --only tutti,nccl)
    add_test(NAME perf_limits_table_late COMMAND Python3::Interpreter ${limits} --only tutti,nccl --late 1)
    # The fake GPU cannot carry out kernels that wait for each other, and its sums are wrong.
    add_test(NAME perf_limits_table_wrong COMMAND Python3::Interpreter ${limits})
    list(APPEND limits_tests perf_limits_table perf_limits_table_late perf_limits_table_wrong)
  endif()
  set_tests_properties(${limits_tests} PROPERTIES LABELS multiprocess TIMEOUT 600 ENVIRONMENT "TUTTI_TUNE=off;${fake}")
  foreach(trouble old refused wrong)
    set_property(TEST perf_limits_nccl_${trouble} APPEND PROPERTY ENVIRONMENT FAKE_NCCL=${trouble})
  endforeach()
  set_tests_properties(perf_limits_nccl_old PROPERTIES PASS_REGULAR_EXPRESSION "NCCL 2.29.7 refuses several ranks on one GPU")
  set_tests_properties(perf_limits_nccl_refused PROPERTIES PASS_REGULAR_EXPRESSION "ncclAllReduce: invalid usage: told to")
  set_tests_properties(perf_limits_nccl_wrong PROPERTIES PASS_REGULAR_EXPRESSION "wrong sums")
  if(TEST perf_limits_table)
    set_tests_properties(perf_limits_table PROPERTIES PASS_REGULAR_EXPRESSION
      "nccl-2.32.3.*waited for.*2 . 64 . [0-9.]+ .* one_shot .* [0-9.]+ .* [0-9.]+ .*in a graph.*2 . 64 . [0-9.]+ .* one_shot .* [0-9.]+ .* [0-9.]+ ")
    set_property(TEST perf_limits_table_late APPEND PROPERTY ENVIRONMENT FAKE_NCCL=late)
    set_tests_properties(perf_limits_table_late PROPERTIES PASS_REGULAR_EXPRESSION "2 . 64 . [0-9.]+ .* one_shot .* late .*one_shot .* late ")
    set_tests_properties(perf_limits_table_wrong PROPERTIES PASS_REGULAR_EXPRESSION
      "2 . 64 . [0-9.]+ .* one_shot . failed .*apart, 2 ranks, waited for: .*wrong sums")
  endif()
  perf_test(no_gpu all_reduce --memory device -t 2 -b 8)
  set_property(TEST perf_no_gpu APPEND PROPERTY ENVIRONMENT TUTTI_CUDA_LIBRARY=/nowhere/libcuda.so.1)
  set_tests_properties(perf_no_gpu PROPERTIES PASS_REGULAR_EXPRESSION "no CUDA driver: /nowhere/libcuda.so.1")
endif()
