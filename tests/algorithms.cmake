# The second proof: what it refuses, and what it proves, the plans of every algorithm.
tutti_test(check_test SOURCES unit/check_test.cpp LIBS tutti_proof LABELS unit proof)
tutti_test(check_parts_test SOURCES unit/check_parts_test.cpp LIBS tutti_proof LABELS unit proof)

tutti_test(positions_test SOURCES unit/positions_test.cpp LIBS tutti_choice tutti_proof LABELS unit proof)
# Steps and bytes, a file for each group of families.
foreach(group all_to_all exchange hierarchical prefix ring_tree rooted)
  tutti_test(families_${group}_test SOURCES unit/families_${group}_test.cpp LIBS tutti_choice tutti_proof LABELS unit proof)
endforeach()

set(reference support/mutants.cpp support/mutant_trials.cpp support/reference_executor.cpp support/reference_calls.cpp
              support/reference_offers.cpp support/reference_values.cpp)
tutti_test(mutant_test SOURCES contract/mutant_test.cpp ${reference} LIBS tutti_choice tutti_proof LABELS proof TIMEOUT 600)
tutti_test(offer_mutant_test SOURCES contract/offer_mutant_test.cpp support/offer_mutants.cpp ${reference}
           LIBS tutti_choice tutti_proof LABELS proof TIMEOUT 600)
tutti_test(residency_test SOURCES contract/residency_test.cpp ${reference} LIBS tutti_choice tutti_proof LABELS proof)
tutti_test(proof_test SOURCES contract/proof_test.cpp LIBS tutti_choice tutti_proof LABELS proof TIMEOUT 600)

# In parts, for as many cores. Sanitizers see the same code with few ranks as with many.
set(parts 4)
set(amount)
if(TUTTI_SANITIZE)
  set(amount TUTTI_TEST_RANKS=17 TUTTI_TEST_FULL=4 TUTTI_TEST_MANY=0 TUTTI_TEST_PAIRS=4 TUTTI_TEST_RESIDENT=30 TUTTI_TEST_MUTANTS=150)
endif()
set_tests_properties(algorithms_test rank_plan_test random_schedules_test mutant_test offer_mutant_test residency_test PROPERTIES ENVIRONMENT "${amount}")
math(EXPR last "${parts} - 1")
foreach(part RANGE ${last})
  set(name proof_test)
  if(part GREATER 0)
    set(name proof_test_${part})
    add_test(NAME ${name} COMMAND proof_test)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS proof TIMEOUT 600 ENVIRONMENT
    "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part};${amount}")
endforeach()

# Every root and case up to 64 ranks, more samples up to 1,024, more mutants.
set(parts 16)
math(EXPR last "${parts} - 1")
foreach(part RANGE ${last})
  add_test(NAME proof_nightly_${part} COMMAND proof_test)
  set_tests_properties(proof_nightly_${part} PROPERTIES LABELS "proof;nightly" TIMEOUT 14400 ENVIRONMENT
    "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part};TUTTI_TEST_FULL=64;TUTTI_TEST_MANY=400;TUTTI_TEST_PAIRS=100")
endforeach()
add_test(NAME mutant_nightly COMMAND mutant_test)
add_test(NAME offer_mutant_nightly COMMAND offer_mutant_test)
set_tests_properties(mutant_nightly offer_mutant_nightly PROPERTIES LABELS "proof;nightly" TIMEOUT 7200 ENVIRONMENT TUTTI_TEST_MUTANTS=20000)
