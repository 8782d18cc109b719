# Writes the text of the file INPUT as a C++ literal to OUTPUT.
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "R\"literal(${text})literal\"\n")
