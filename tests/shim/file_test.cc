/* tests/shim/file_test.cc - whole files or none, whatever stands in the way. */
#include "shim/observe/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <string>
#include <vector>

#include "tests/shim/observe_case.h"

using namespace ag_test;

namespace
{

class File : public InOwnDirectory
{
  protected:
    // Status of the first step that failed, or 0.
    static int put(const std::string &path, const std::string &text)
    {
        ag_file f;
        int error = ag_file_create(&f, path.c_str());
        if (error == 0) {
            ag_sink_put(&f.sink, text.data(), text.size());
            error = ag_file_commit(&f);
        }
        return error;
    }
};

using Names = std::vector<std::string>;

TEST_F(File, ANameIsExpanded)
{
    ag_identity id = {"node7", 42, 1700000000, 0};
    char out[64];
    EXPECT_EQ(ag_file_expand(out, sizeof out, "/x/%h.%p.%t.json", &id), 0);
    EXPECT_STREQ(out, "/x/node7.42.1700000000.json");
    EXPECT_EQ(ag_file_expand(out, sizeof out, "100%% %q %", &id), 0);
    EXPECT_STREQ(out, "100% %q %");
    EXPECT_EQ(ag_file_expand(out, sizeof out, "", &id), 0);
    EXPECT_STREQ(out, "");
}

TEST_F(File, ANameThatDoesNotFitIsRefusedAndNotCut)
{
    ag_identity id = {"node7", 42, 1700000000, 0};
    char out[6];
    EXPECT_EQ(ag_file_expand(out, sizeof out, "%h", &id), 0);
    EXPECT_EQ(ag_file_expand(out, sizeof out, "%h.", &id), ENAMETOOLONG);
    EXPECT_EQ(ag_file_expand(out, sizeof out, "123456", &id), ENAMETOOLONG);
}

TEST_F(File, TheIdentityIsThisProcess)
{
    ag_identity id;
    ag_identity_read(&id);
    EXPECT_EQ(id.pid, getpid());
    EXPECT_LE(id.start, (uint64_t)time(nullptr));
    EXPECT_GE(id.start + 60, (uint64_t)time(nullptr));
    EXPECT_EQ(strchr(id.host, '/'), nullptr);
    EXPECT_STRNE(id.host, "");
    EXPECT_TRUE(ag_identity_is_ours(&id));
    EXPECT_EQ(in_child([&] { EXPECT_FALSE(ag_identity_is_ours(&id)); }), 0);
}

TEST_F(File, AFileAppearsOnlyWhenItIsComplete)
{
    ag_file f;
    ASSERT_EQ(ag_file_create(&f, path("a").c_str()), 0);
    ag_sink_text(&f.sink, "half");
    EXPECT_FALSE(exists(path("a")));
    ASSERT_EQ(ag_file_commit(&f), 0);
    EXPECT_EQ(read_file(path("a")), "half");
    EXPECT_EQ(names_in(dir), Names{"a"});
}

TEST_F(File, AFileIsForTheUserAloneEvenIfTheUmaskIsOpen)
{
    mode_t before = umask(0);
    EXPECT_EQ(put(path("a"), "x"), 0);
    umask(before);
    EXPECT_EQ(mode_of(path("a")), 0600u);
}

TEST_F(File, ASecondWriteReplacesTheFirstAsAWhole)
{
    EXPECT_EQ(put(path("a"), std::string(100000, 'x')), 0);
    int reader = open(path("a").c_str(), O_RDONLY);
    EXPECT_EQ(put(path("a"), "new"), 0);
    EXPECT_EQ(read_file(path("a")), "new");
    EXPECT_EQ(lseek(reader, 0, SEEK_END), 100000) << "who has it open keeps what was there";
    close(reader);
    EXPECT_EQ(names_in(dir), Names{"a"});
}

TEST_F(File, DiscardLeavesNothing)
{
    ag_file f;
    ASSERT_EQ(ag_file_create(&f, path("a").c_str()), 0);
    ag_sink_text(&f.sink, "x");
    ag_file_discard(&f);
    EXPECT_EQ(names_in(dir), Names{});
}

TEST_F(File, ASymbolicLinkIsNeitherFollowedNorReplaced)
{
    write_text(path("victim"), "precious");
    ASSERT_EQ(symlink(path("victim").c_str(), path("a").c_str()), 0);
    ASSERT_EQ(symlink(path("nowhere").c_str(), path("b").c_str()), 0);
    EXPECT_EQ(put(path("a"), "evil"), ELOOP);
    EXPECT_EQ(put(path("b"), "evil"), ELOOP);
    EXPECT_EQ(read_file(path("victim")), "precious");
    EXPECT_EQ(names_in(dir), (Names{"a", "b", "victim"}));
}

TEST_F(File, ALinkPutThereInTheMeantimeIsReplacedAndItsTargetIsNotTouched)
{
    write_text(path("victim"), "precious");
    ag_file f;
    ASSERT_EQ(ag_file_create(&f, path("a").c_str()), 0);
    ASSERT_EQ(symlink(path("victim").c_str(), path("a").c_str()), 0);
    ag_sink_text(&f.sink, "ours");
    EXPECT_EQ(ag_file_commit(&f), 0);
    EXPECT_EQ(read_file(path("victim")), "precious");
    EXPECT_EQ(read_file(path("a")), "ours");
}

TEST_F(File, WhatIsNoRegularFileIsNotReplaced)
{
    ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
    ASSERT_EQ(mkdir(path("folder").c_str(), 0700), 0);
    EXPECT_EQ(put(path("fifo"), "x"), EEXIST);
    EXPECT_EQ(put(path("folder"), "x"), EEXIST);
    /* Like /dev/null, which a root user could lose; never tried on the machine's own. */
    if (mknod(path("null").c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) {
        fprintf(stderr, "NOT CHECKED: cannot make a device here\n");
        return;
    }
    EXPECT_EQ(put(path("null"), "x"), EEXIST);
    struct stat st;
    ASSERT_EQ(lstat(path("null").c_str(), &st), 0);
    EXPECT_TRUE(S_ISCHR(st.st_mode));
}

TEST_F(File, DirectoriesAreNotMade)
{
    EXPECT_EQ(put(path("no/a"), "x"), ENOENT);
    write_text(path("plain"), "");
    EXPECT_EQ(put(path("plain/a"), "x"), ENOTDIR);
    EXPECT_EQ(put(path(""), "x"), EISDIR);
    EXPECT_EQ(put(path(std::string(300, 'n')), "x"), ENAMETOOLONG);
    EXPECT_EQ(put("/" + std::string(5000, 'n') + "/a", "x"), ENAMETOOLONG);
    EXPECT_EQ(names_in(dir), Names{"plain"});
}

TEST_F(File, AnUnwritableDirectoryIsAnError)
{
    EXPECT_NE(put("/proc/autograph", "x"), 0) << "not even root makes files there";
    ASSERT_EQ(chmod(dir.c_str(), 0500), 0);
    EXPECT_EQ(in_child([&] {
                  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
                      fprintf(stderr, "NOT CHECKED: cannot become another user here\n");
                      return;
                  }
                  EXPECT_EQ(put(path("a"), "x"), EACCES);
              }),
              0);
    chmod(dir.c_str(), 0700);
    EXPECT_EQ(names_in(dir), Names{});
}

TEST_F(File, ASizeLimitNeitherKillsNorLeavesAnythingAndTheOldFileStays)
{
    ASSERT_EQ(put(path("a"), "old"), 0);
    EXPECT_EQ(in_child([&] {
                  signal(SIGXFSZ, SIG_DFL);
                  rlimit limit = {1000, 1000};
                  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
                  EXPECT_EQ(put(path("a"), std::string(100000, 'x')), EFBIG);
              }),
              0);
    EXPECT_EQ(read_file(path("a")), "old");
    EXPECT_EQ(names_in(dir), Names{"a"});
}

TEST_F(File, LeftoversOfAnotherProcessOfTheSameNumberAreSteppedOver)
{
    for (int i = 0; i < 40; i++) {
        write_text(
            path(".autograph." + std::to_string(getpid()) + "." + std::to_string(i) + ".tmp"),
            "theirs");
    }
    EXPECT_EQ(put(path("a"), "ours"), 0);
    EXPECT_EQ(read_file(path("a")), "ours");
    EXPECT_EQ(names_in(dir).size(), 41u);
}

TEST_F(File, TheProgramMayChangeItsDirectoryInBetween)
{
    EXPECT_EQ(in_child([&] {
                  ASSERT_EQ(chdir(dir.c_str()), 0);
                  ag_file f;
                  ASSERT_EQ(ag_file_create(&f, "a"), 0);
                  ASSERT_EQ(chdir("/"), 0);
                  ag_sink_text(&f.sink, "x");
                  EXPECT_EQ(ag_file_commit(&f), 0);
              }),
              0);
    EXPECT_EQ(read_file(path("a")), "x");
}

TEST_F(File, AProgramWithoutStandardStreamsDoesNotPrintIntoOurFile)
{
    EXPECT_EQ(in_child([&] {
                  close(0), close(1), close(2);
                  ag_file f;
                  if (ag_file_create(&f, path("a").c_str()) != 0) {
                      _exit(1);
                  }
                  if (write(1, "program", 7) >= 0 || write(2, "program", 7) >= 0) {
                      _exit(2);
                  }
                  ag_sink_text(&f.sink, "ours");
                  _exit(ag_file_commit(&f) == 0 ? 0 : 3);
              }),
              0);
    EXPECT_EQ(read_file(path("a")), "ours");
}

TEST_F(File, ErrnoAndDescriptorsAreLeftAsTheyWere)
{
    ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
    int before = open("/dev/null", O_RDONLY);
    close(before);
    errno = 77;
    EXPECT_EQ(put(path("a"), "x"), 0);
    EXPECT_EQ(put(path("no/a"), "x"), ENOENT);
    EXPECT_EQ(put(path("fifo"), "x"), EEXIST);
    EXPECT_EQ(errno, 77);
    int after = open("/dev/null", O_RDONLY);
    close(after);
    EXPECT_EQ(before, after) << "a descriptor leaked";
}

TEST_F(File, EveryReasonHasWords)
{
    for (int error = 1; error < 134; error++) {
        EXPECT_STRNE(ag_file_reason(error), "");
    }
    EXPECT_STREQ(ag_file_reason(ENOSPC), "no space left on device");
}

} // namespace
