# What must happen: schedules and plans, their proofs, and the algorithms. One thread, no waiting (label proof).
foreach(name schedule operand_counts written_chunks verify contributions plan lower last_passes fuse outlasting algorithms
             rank_order rank_plan select cost_parts cost step_cost)
  tutti_test(${name}_test SOURCES unit/${name}_test.cpp LIBS tutti_choice tutti_proof LABELS unit proof)
endforeach()
tutti_test(random_schedules_test SOURCES contract/random_schedules_test.cpp LIBS tutti_proof LABELS contract proof)
