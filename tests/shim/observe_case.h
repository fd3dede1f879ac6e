/* tests/shim/observe_case.h - what the tests of shim/observe share: a directory of their own, a
 * child to break.
 * Called by  every test of this folder      Calls  tests/support/process.h
 * Threads    one
 * Promise    a child that dies or hangs is a failed expectation, not the end of the test program
 * Start at   in_child() */
#ifndef AG_TESTS_SHIM_OBSERVE_CASE_H
#define AG_TESTS_SHIM_OBSERVE_CASE_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "shim/observe/file.h"
#include "shim/observe/options.h"
#include "tests/support/process.h"

namespace ag_test
{

class InOwnDirectory : public ::testing::Test
{
  protected:
    void SetUp() override
    {
        dir = make_dir("observe");
        ASSERT_NE(dir, "");
    }
    void TearDown() override
    {
        remove_dir(dir);
    }
    std::string path(const std::string &name) const
    {
        return dir + "/" + name;
    }
    std::string dir;
};

// Options as the given environment makes them.
inline ag_options options_of(std::vector<std::string> environment)
{
    std::vector<char *> list;
    for (std::string &e : environment) {
        list.push_back(&e[0]);
    }
    list.push_back(nullptr);
    ag_options o;
    ag_options_load_as(&o, list.data(), false);
    return o;
}

// Exit status of a child that runs `body` (0: it came to its end), or 128 + signal. What a process
// may have only one of (its log, its statistics) starts afresh in there, and what would kill the
// program kills the child.
inline int in_child(const std::function<void()> &body)
{
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        body();
        _exit(::testing::Test::HasFailure() ? 99 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline void write_text(const std::string &path, const std::string &text)
{
    FILE *f = fopen(path.c_str(), "w");
    ASSERT_NE(f, nullptr) << path;
    fwrite(text.data(), 1, text.size(), f);
    ASSERT_EQ(fclose(f), 0);
}

// Names in a directory, without "." and "..", in order.
inline std::vector<std::string> names_in(const std::string &dir)
{
    std::vector<std::string> names;
    dirent **list = nullptr;
    int n = scandir(dir.c_str(), &list, nullptr, alphasort);
    for (int i = 0; i < n; i++) {
        std::string name = list[i]->d_name;
        free(list[i]);
        if (name != "." && name != "..") {
            names.push_back(name);
        }
    }
    free(list);
    return names;
}

inline unsigned mode_of(const std::string &path)
{
    struct stat st;
    return lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

// What `expression` says of the JSON document d in the file; "?" and the parser's words when it is
// none.
inline std::string ask_json(const std::string &path, const std::string &expression)
{
    Run r = run({"/usr/bin/python3", "-c",
                 "import json,sys\n"
                 "d=json.load(open(sys.argv[1],encoding='utf-8'))\n"
                 "print(eval(sys.argv[2]),end='')",
                 path, expression},
                {{"PYTHONIOENCODING", "utf-8"}}, 20);
    return r.status == 0 ? r.out : "?" + r.err;
}

inline bool accepted_by_json_tool(const std::string &path)
{
    return run({"/usr/bin/python3", "-m", "json.tool", path}, {}, 20).status == 0;
}

} // namespace ag_test
#endif
