# cmake -DOUT=page.c -DDIR=src/lab/page -P embed.cmake: the page's files as C.
set(text "#include \"lab/page/page.h\"\n\n")

# The bytes of files, one behind the other, between two more texts, as
# adjacent literals, so that no line is endless.
function(embed name first last)
  string(HEX "${first}" all)
  foreach(file ${ARGN})
    file(READ ${DIR}/${file} body HEX)
    string(APPEND all "${body}")
  endforeach()
  string(HEX "${last}" body)
  string(APPEND all "${body}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" all "${all}")
  string(REGEX REPLACE "(\\\\x..\\\\x..\\\\x..\\\\x..\\\\x..\\\\x..\\\\x..\\\\x..)"
         "\\1\"\n  \"" all "${all}")
  set(text "${text}const char ${name}[] =\n  \"${all}\";\n" PARENT_SCOPE)
endfunction()

embed(lw_page_html "" "" page.html)
embed(lw_page_css "" "" page.css)
embed(lw_page_js "\"use strict\";\n(() => {\n" "})();\n" base.js graph.js why.js
      tabs.js)
file(WRITE ${OUT} "${text}")
