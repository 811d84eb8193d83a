# cmake -DOUT=pages.c -DDOCS=docs -P pages.cmake: the pages as one C table.
set(text "#include \"pages.h\"\n\nconst cli_page cli_pages[] = {\n")
foreach(kind passes reasons)
  file(GLOB pages ${DOCS}/${kind}/*.md)
  list(SORT pages)
  foreach(page ${pages})
    get_filename_component(name ${page} NAME_WE)
    file(READ ${page} body HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" body "${body}")
    # Adjacent literals, so that no line is endless.
    string(REGEX REPLACE "((\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..)(\\\\x..))"
           "\\1\"\n     \"" body "${body}")
    string(APPEND text "    {\"${kind}\", \"${name}\",\n     \"${body}\"},\n")
  endforeach()
endforeach()
string(APPEND text "    {0, 0, 0}};\n")
file(WRITE ${OUT} "${text}")
