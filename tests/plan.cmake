# What must happen: schedules and plans, their proofs, and the algorithms.
foreach(name schedule verify plan lower fuse algorithms select cost)
  tutti_test(${name}_test SOURCES unit/${name}_test.cpp LIBS tutti_algorithms LABELS unit)
endforeach()
tutti_test(random_schedules_test SOURCES contract/random_schedules_test.cpp LIBS tutti_plan LABELS contract)
