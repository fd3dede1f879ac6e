/* tests/shim/json_test.cc - what the writer writes, another parser reads. */
#include <fcntl.h>

#include <cerrno>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "shim/observe/json.h"
#include "tests/shim/observe_case.h"

using namespace ag_test;

namespace
{

class Json : public InOwnDirectory
{
  protected:
    // Status of ag_json_close() after `body` wrote to a new file.
    int write(const std::function<void(ag_json *)> &body)
    {
        file = path("a.json");
        int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int status = write_to(fd, body);
        close(fd);
        return status;
    }
    static int write_to(int fd, const std::function<void(ag_json *)> &body)
    {
        ag_sink sink;
        ag_json j;
        ag_sink_open(&sink, fd);
        ag_json_open(&j, &sink);
        body(&j);
        return ag_json_close(&j);
    }
    std::string file;
};

TEST_F(Json, AnObjectOfEverythingIsReadBack)
{
    ASSERT_EQ(write([](ag_json *j) {
                  ag_json_object(j, nullptr);
                  ag_json_text(j, "text", "plain");
                  ag_json_u64(j, "most", UINT64_MAX);
                  ag_json_u64(j, "least", 0);
                  ag_json_bool(j, "yes", true);
                  ag_json_bool(j, "no", false);
                  ag_json_null(j, "null");
                  ag_json_text(j, "none", nullptr);
                  ag_json_object(j, "empty");
                  ag_json_end(j);
                  ag_json_array(j, "list");
                  ag_json_u64(j, nullptr, 1);
                  ag_json_array(j, nullptr);
                  ag_json_end(j);
                  ag_json_object(j, nullptr);
                  ag_json_double(j, "half", 0.5);
                  ag_json_end(j);
                  ag_json_end(j);
                  ag_json_text(j, "last", "");
                  ag_json_end(j);
              }),
              0);
    EXPECT_TRUE(accepted_by_json_tool(file));
    EXPECT_EQ(ask_json(file, "d"),
              "{'text': 'plain', 'most': 18446744073709551615, 'least': 0, 'yes': True, 'no': "
              "False, 'null': None, 'none': None, 'empty': {}, 'list': [1, [], {'half': 0.5}], "
              "'last': ''}");
}

TEST_F(Json, EveryByteButZeroMakesAValidString)
{
    ASSERT_EQ(write([](ag_json *j) {
                  ag_json_array(j, nullptr);
                  for (int c = 1; c < 256; c++) {
                      char text[] = {'a', (char)c, 'b', 0};
                      ag_json_text(j, nullptr, text);
                  }
                  ag_json_end(j);
              }),
              0);
    EXPECT_EQ(ask_json(file, "[c for c in range(1,256) if d[c-1] != "
                             "'a'+(chr(c) if c<128 else '\\ufffd')+'b']"),
              "[]");
}

TEST_F(Json, KeysAreEscapedLikeValues)
{
    ASSERT_EQ(write([](ag_json *j) {
                  ag_json_object(j, nullptr);
                  ag_json_u64(j, "a\"b\\\n\x80", 1);
                  ag_json_end(j);
              }),
              0);
    EXPECT_EQ(ask_json(file, "list(d)[0] == 'a\"b\\\\\\n\\ufffd'"), "True");
}

TEST_F(Json, WellFormedUtf8StaysAndTheRestIsReplaced)
{
    struct {
        const char *bytes, *python;
    } cases[] = {
        {"\xc3\xa9", "'\\u00e9'"},
        {"\xe2\x82\xac", "'\\u20ac'"},
        {"\xf0\x9f\x98\x80", "'\\U0001f600'"},
        {"\xf4\x8f\xbf\xbf", "'\\U0010ffff'"},
        {"\xed\x9f\xbf", "'\\ud7ff'"},
        {"\xc0\xaf", "'\\ufffd'*2"},         // overlong
        {"\xe0\x80\xaf", "'\\ufffd'*3"},     // overlong
        {"\xf0\x80\x80\xaf", "'\\ufffd'*4"}, // overlong
        {"\xed\xa0\x80", "'\\ufffd'*3"},     // surrogate
        {"\xf4\x90\x80\x80", "'\\ufffd'*4"}, // above U+10FFFF
        {"\xf5", "'\\ufffd'"},
        {"\xe2\x82", "'\\ufffd'*2"}, // cut off by the end
        {"\xe2\x82z", "'\\ufffd'*2+'z'"},
        {"\xc3", "'\\ufffd'"},
        {"\xf0\x9f\x98", "'\\ufffd'*3"},
    };
    ASSERT_EQ(write([&](ag_json *j) {
                  ag_json_array(j, nullptr);
                  for (auto &c : cases) {
                      ag_json_text(j, nullptr, c.bytes);
                  }
                  ag_json_end(j);
              }),
              0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        EXPECT_EQ(ask_json(file, "d[" + std::to_string(i) + "] == " + cases[i].python), "True")
            << i;
    }
}

TEST_F(Json, DoublesKeepTwelveDigits)
{
    std::mt19937_64 random(1);
    std::vector<double> values = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.1,
                                  10,
                                  9.99999999999999999,
                                  99999999999999.9,
                                  1e15,
                                  1e308,
                                  std::numeric_limits<double>::max(),
                                  std::numeric_limits<double>::min(),
                                  1.0 / 3,
                                  -2e-7};
    for (int i = 0; i < 500; i++) {
        values.push_back(std::ldexp((double)random(), (int)(random() % 1900) - 1000));
    }
    ASSERT_EQ(write([&](ag_json *j) {
                  ag_json_array(j, nullptr);
                  for (double v : values) {
                      ag_json_double(j, nullptr, v);
                  }
                  ag_json_end(j);
              }),
              0);
    EXPECT_TRUE(accepted_by_json_tool(file));
    std::string text = read_file(file);
    const char *at = text.c_str() + 1;
    for (double v : values) {
        char *end;
        double read = strtod(at, &end);
        ASSERT_NE(at, end);
        EXPECT_NEAR(read, v, std::fabs(v) * 1e-12);
        at = end + 1;
    }
}

TEST_F(Json, UsualDoublesLookAsOneWouldWriteThem)
{
    struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {-0.5, "-0.5"},
                 {32, "32"},
                 {1.25, "1.25"},
                 {100, "100"},
                 {123456, "123456"},
                 {0.1, "0.1"},
                 {0.00001, "0.00001"},
                 {0.000001, "1e-6"},
                 {-2.5e-7, "-2.5e-7"},
                 {999999999999999, "999999999999999"},
                 {1e15, "1e+15"},
                 {1e-5, "0.00001"},
                 {0.00123, "0.00123"},
                 {99.5, "99.5"}};
    for (auto &c : cases) {
        ASSERT_EQ(write([&](ag_json *j) { ag_json_double(j, nullptr, c.value); }), 0);
        EXPECT_EQ(read_file(file), std::string(c.text) + "\n");
    }
}

TEST_F(Json, WhatIsNoNumberIsNull)
{
    ASSERT_EQ(write([](ag_json *j) {
                  ag_json_array(j, nullptr);
                  ag_json_double(j, nullptr, std::numeric_limits<double>::infinity());
                  ag_json_double(j, nullptr, -std::numeric_limits<double>::infinity());
                  ag_json_double(j, nullptr, std::nan(""));
                  ag_json_end(j);
              }),
              0);
    EXPECT_EQ(ask_json(file, "d"), "[None, None, None]");
}

TEST_F(Json, RandomTreesAreReadBack)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        std::mt19937 random(seed);
        std::function<void(ag_json *, const char *, int)> grow = [&](ag_json *j, const char *key,
                                                                     int depth) {
            unsigned kind = random() % (depth < 12 ? 6 : 3);
            if (kind == 0) {
                std::string bytes;
                for (unsigned n = random() % 40; n > 0; n--) {
                    bytes += (char)(random() % 256);
                }
                ag_json_text(j, key, bytes.c_str());
            } else if (kind == 1) {
                ag_json_u64(j, key, random());
            } else if (kind == 2) {
                ag_json_double(j, key, random() / 7.0);
            } else {
                bool array = kind == 3;
                array ? ag_json_array(j, key) : ag_json_object(j, key);
                for (unsigned n = random() % 5; n > 0; n--) {
                    std::string name = "k" + std::to_string(n);
                    grow(j, array ? nullptr : name.c_str(), depth + 1);
                }
                ag_json_end(j);
            }
        };
        ASSERT_EQ(write([&](ag_json *j) {
                      ag_json_array(j, nullptr);
                      for (int i = 0; i < 20; i++) {
                          grow(j, nullptr, 1);
                      }
                      ag_json_end(j);
                  }),
                  0);
        EXPECT_EQ(ask_json(file, "len(d)"), "20") << "seed " << seed;
    }
}

TEST_F(Json, CallsThatDoNotFitAreRefused)
{
    EXPECT_EQ(write([](ag_json *) {}), EINVAL) << "nothing written";
    EXPECT_EQ(write([](ag_json *j) { ag_json_object(j, nullptr); }), EINVAL) << "not ended";
    EXPECT_EQ(write([](ag_json *j) {
                  ag_json_u64(j, nullptr, 1);
                  ag_json_end(j);
              }),
              EINVAL)
        << "ended too often";
    EXPECT_EQ(write([](ag_json *j) {
                  ag_json_u64(j, nullptr, 1);
                  ag_json_u64(j, nullptr, 2);
              }),
              EINVAL)
        << "two roots";
    EXPECT_EQ(write([](ag_json *j) {
                  ag_json_object(j, nullptr);
                  ag_json_u64(j, nullptr, 1);
                  ag_json_end(j);
              }),
              EINVAL)
        << "a member without a name";
    EXPECT_EQ(write([](ag_json *j) {
                  ag_json_array(j, nullptr);
                  ag_json_u64(j, "name", 1);
                  ag_json_end(j);
              }),
              EINVAL)
        << "an element with a name";
}

TEST_F(Json, TheDeepestTreeIsFineAndOneDeeperIsRefused)
{
    auto nest = [](int depth) {
        return [depth](ag_json *j) {
            for (int i = 0; i < depth; i++) {
                ag_json_array(j, nullptr);
            }
            for (int i = 0; i < depth; i++) {
                ag_json_end(j);
            }
        };
    };
    EXPECT_EQ(write(nest(AG_JSON_DEPTH - 1)), 0);
    EXPECT_TRUE(accepted_by_json_tool(file));
    EXPECT_EQ(write(nest(AG_JSON_DEPTH)), EINVAL);
    EXPECT_EQ(write(nest(AG_JSON_DEPTH * 3)), EINVAL);
}

TEST_F(Json, AFullDiskIsNoticed)
{
    int fd = open("/dev/full", O_WRONLY);
    ASSERT_GE(fd, 0);
    for (int members : {1, 5000}) {
        EXPECT_EQ(write_to(fd,
                           [&](ag_json *j) {
                               ag_json_array(j, nullptr);
                               for (int i = 0; i < members; i++) {
                                   ag_json_u64(j, nullptr, 7);
                               }
                               ag_json_end(j);
                           }),
                  ENOSPC);
    }
    close(fd);
}

} // namespace
