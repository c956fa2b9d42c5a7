# Portable PDBs of NuGet packages against System.Reflection.Metadata.
if(TARGET pdb_text)
  add_test(NAME pdb_oracle_test COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/pdb_oracle_test.py)
  set_tests_properties(pdb_oracle_test PROPERTIES LABELS "long" TIMEOUT 1800 SKIP_RETURN_CODE 77
    ENVIRONMENT "PDB_TEXT=$<TARGET_FILE:pdb_text>;PYTHONDONTWRITEBYTECODE=1")
endif()
