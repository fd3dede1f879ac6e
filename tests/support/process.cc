/* tests/support/process.cc - run a program under a chosen environment and keep what it said.
 * Called by  tests/differential, tests/scenarios      Calls  posix only
 * Threads    see process.h
 * Promise    see process.h
 * Start at   run() */
#include "tests/support/process.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace ag_test
{

namespace
{

using Clock = std::chrono::steady_clock;

std::vector<std::string> full_environment(const std::map<std::string, std::string> &env)
{
    std::vector<std::string> all;
    for (char **e = environ; *e; e++)
        if (!strncmp(*e, "PATH=", 5) || !strncmp(*e, "HOME=", 5) || !strncmp(*e, "TEST_", 5))
            all.push_back(*e);
    for (const auto &[key, value] : env)
        all.push_back(key + "=" + value);
    return all;
}

std::vector<char *> pointers(const std::vector<std::string> &strings)
{
    std::vector<char *> p;
    for (const std::string &s : strings)
        p.push_back(const_cast<char *>(s.c_str()));
    p.push_back(nullptr);
    return p;
}

int milliseconds_left(Clock::time_point end)
{
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    return left > 0 ? static_cast<int>(left) : 0;
}

// Reads both pipes until the child closed them or time is up. False: time is up.
bool collect(int out, int err, Clock::time_point end, Run *run)
{
    pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    std::string *sinks[2] = {&run->out, &run->err};
    int open = 2;
    while (open > 0) {
        int ret = poll(fds, 2, milliseconds_left(end));
        if (ret == 0)
            return false;
        if (ret < 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || !fds[i].revents)
                continue;
            char buffer[65536];
            ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
            if (n > 0) {
                sinks[i]->append(buffer, static_cast<size_t>(n));
            } else if (n == 0 || errno != EINTR) {
                fds[i].fd = -1;
                open--;
            }
        }
    }
    return true;
}

// The pipes are closed, but the child may still be on its way out.
void reap(pid_t pid, Clock::time_point end, Run *run)
{
    int status = 0;
    while (!run->timed_out && waitpid(pid, &status, WNOHANG) == 0) {
        if (milliseconds_left(end) == 0)
            run->timed_out = true;
        else
            usleep(200);
    }
    if (run->timed_out) {
        kill(-pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

Run run(const std::vector<std::string> &argv, const std::map<std::string, std::string> &env,
        int limit_seconds)
{
    Run result;
    std::vector<std::string> environment = full_environment(env);
    std::vector<char *> args = pointers(argv), vars = pointers(environment);
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return result;
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[0]);
        close(out[1]);
        return result;
    }
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execve(args[0], args.data(), vars.data());
        _exit(127);
    }
    setpgid(pid, pid);
    close(out[1]);
    close(err[1]);
    auto end = Clock::now() + std::chrono::seconds(limit_seconds);
    result.timed_out = !collect(out[0], err[0], end, &result);
    close(out[0]);
    close(err[0]);
    reap(pid, end, &result);
    return result;
}

std::string runfile(const std::string &path)
{
    // The source tree has folders of the same names, so the working directory comes last.
    std::vector<std::string> roots;
    if (const char *root = getenv("TEST_SRCDIR"))
        roots.push_back(std::string(root) + "/autograph/");
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0)
        roots.push_back(std::string(self, static_cast<size_t>(n)) + ".runfiles/autograph/");
    if (!path.empty() && path[0] != '/')
        for (const std::string &root : roots)
            if (exists(root + path))
                return root + path;
    return std::filesystem::absolute(path).string();
}

std::string preload(const std::string &library)
{
#if defined(__SANITIZE_ADDRESS__)
    return "libasan.so.8:" + library;
#elif defined(__SANITIZE_THREAD__)
    return "libtsan.so.2:" + library;
#else
    return library;
#endif
}

std::string make_dir(const std::string &prefix)
{
    const char *base = getenv("TEST_TMPDIR");
    std::string path = std::string(base ? base : "/tmp") + "/" + prefix + "-XXXXXX";
    return mkdtemp(path.data()) ? path : std::string();
}

void remove_dir(const std::string &dir)
{
    DIR *d = opendir(dir.c_str());
    if (!d)
        return;
    while (dirent *e = readdir(d))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            unlink((dir + "/" + e->d_name).c_str());
    closedir(d);
    rmdir(dir.c_str());
}

std::string read_file(const std::string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

bool exists(const std::string &path)
{
    struct stat s;
    return stat(path.c_str(), &s) == 0;
}

std::map<std::string, std::string> simcuda_env(const std::string &driver_dir,
                                               const std::string &shim)
{
    std::map<std::string, std::string> env = {
        {"LD_LIBRARY_PATH", driver_dir},
        {"SIMCUDA_STRICT", "abort"},
        // What a driver keeps until exit is not a leak of ours.
        {"ASAN_OPTIONS", "detect_leaks=0:abort_on_error=0"},
    };
    if (!shim.empty()) {
        env["LD_PRELOAD"] = preload(shim);
        // Wall time says nothing here; who tests the measuring sets it again.
        env["AUTOGRAPH_PACE"] = "prompt";
    }
    return env;
}

} // namespace ag_test
