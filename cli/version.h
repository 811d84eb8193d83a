#ifndef LW_CLI_VERSION_H
#define LW_CLI_VERSION_H
#define LW_VERSION "0.1.0"
#endif
