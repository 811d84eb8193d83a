/* The files of the x-ray page, built in. */
#ifndef LW_LAB_PAGE_H
#define LW_LAB_PAGE_H

extern const char lw_page_html[], lw_page_css[], lw_page_js[];

#endif
