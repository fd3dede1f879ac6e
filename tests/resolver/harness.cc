// tests/resolver/harness.cc - see harness.h.
#include "tests/resolver/harness.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

extern char **environ;

namespace resolver
{
namespace
{

std::string here()
{
    static const std::string path = [] {
        char buffer[4096];
        return std::string(getcwd(buffer, sizeof buffer) ? buffer : ".");
    }();
    return path;
}

// A sanitizer's runtime must come first in the preload order, or the process refuses to start.
std::string preload()
{
#if defined(__SANITIZE_ADDRESS__)
    return "libasan.so.8:" + library();
#elif defined(__SANITIZE_THREAD__)
    return "libtsan.so.2:" + library();
#else
    return library();
#endif
}

bool ours(const char *variable)
{
    for (const char *prefix : {"AUTOGRAPH", "FAKE_", "LD_"})
        if (strncmp(variable, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

std::vector<std::string> environment(const Case &c, bool preloaded)
{
    std::vector<std::string> all;
    for (char **v = environ; *v; v++)
        if (!ours(*v))
            all.push_back(*v);
    if (!c.driver.empty())
        all.push_back("LD_LIBRARY_PATH=" + fixture(c.driver));
    if (preloaded)
        all.push_back("LD_PRELOAD=" + preload());
    // Children of a test leak by design (_exit, exec); a leak report would be about the case, not
    // about the shim.
    all.push_back("ASAN_OPTIONS=detect_leaks=0");
    all.insert(all.end(), c.environment.begin(), c.environment.end());
    return all;
}

[[noreturn]] void become(const std::vector<std::string> &command,
                         const std::vector<std::string> &env, unsigned limit_s)
{
    std::vector<char *> argv, envp;
    for (const std::string &s : command)
        argv.push_back(const_cast<char *>(s.c_str()));
    for (const std::string &s : env)
        envp.push_back(const_cast<char *>(s.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    alarm(limit_s);
    execvpe(argv[0], argv.data(), envp.data());
    _exit(126);
}

std::string drain(int fd)
{
    std::string text;
    char buffer[1 << 16];
    ssize_t n;
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        text.append(buffer, static_cast<size_t>(n));
    close(fd);
    return text;
}

} // namespace

std::string fixture(const std::string &name)
{
    return here() + "/tests/resolver/" + name;
}

std::string library()
{
    return here() + "/libautograph.so";
}

std::vector<std::string> lines(const std::string &text)
{
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        all.push_back(line);
    return all;
}

Outcome run(const Case &c, bool preloaded)
{
    Outcome o;
    std::vector<std::string> command = c.command;
    if (command[0].find('/') == std::string::npos)
        command[0] = fixture(command[0]);
    const std::vector<std::string> env = environment(c, preloaded);
    int pipe_fd[2];
    if (pipe2(pipe_fd, O_CLOEXEC) != 0)
        return o;
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_fd[1], 1);
        dup2(pipe_fd[1], 2);
        become(command, env, c.limit_s);
    }
    close(pipe_fd[1]);
    for (const std::string &line : lines(drain(pipe_fd[0]))) {
        if (line.compare(0, 6, "shim: ") == 0)
            o.shim.push_back(line.substr(6));
        else
            o.out += line + "\n";
    }
    int status = 0;
    waitpid(child, &status, 0);
    o.exit = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
    return o;
}

std::string shell(const std::string &command)
{
    FILE *p = popen((command + " 2>&1").c_str(), "r");
    std::string text;
    char buffer[4096];
    while (p && fgets(buffer, sizeof buffer, p))
        text += buffer;
    EXPECT_TRUE(p && pclose(p) == 0) << command << "\n" << text;
    return text;
}

namespace
{

// The first few lines that differ, each with its number: whole outputs have 40,000 lines.
std::string differences(const std::string &native, const std::string &with)
{
    const std::vector<std::string> a = lines(native), b = lines(with);
    std::ostringstream text;
    int shown = 0;
    for (size_t i = 0; i < std::max(a.size(), b.size()) && shown < 12; i++) {
        const std::string left = i < a.size() ? a[i] : "(ended)",
                          right = i < b.size() ? b[i] : "(ended)";
        if (left == right)
            continue;
        text << "line " << i + 1 << "\n  native: " << left << "\n  shim:   " << right << "\n";
        shown++;
    }
    return text.str();
}

} // namespace

Outcome same_as_native(const Case &c, int exit)
{
    const Outcome native = run(c, false);
    const Outcome with = run(c, true);
    EXPECT_EQ(exit, native.exit) << "the native run is the golden record, and it failed:\n"
                                 << native.out;
    EXPECT_EQ(native.exit, with.exit) << with.out.substr(0, 2000);
    EXPECT_TRUE(native.out == with.out) << differences(native.out, with.out);
    return with;
}

void expect_home(const Outcome &o, const std::string &about, const std::string &home)
{
    int found = 0;
    for (const std::string &line : o.shim) {
        if (line.compare(0, about.size(), about) != 0)
            continue;
        found++;
        const std::string end = line.substr(line.rfind(' ') + 1);
        EXPECT_EQ(home, end) << line;
        if (end != home)
            break;
    }
    EXPECT_GT(found, 0) << "nothing was said about '" << about << "'";
}

} // namespace resolver
