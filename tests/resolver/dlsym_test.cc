// tests/resolver/dlsym_test.cc - every way to ask dlsym for a driver function, in fresh processes;
// the golden record is the same case without the shim.
#include "tests/resolver/harness.h"

namespace resolver
{
namespace
{

// DESIGN 2, route 2; C1.
TEST(Dlsym, OnADriverHandleGivesTheHookOfExactlyThatSymbol)
{
    const Outcome o = same_as_native({{"case", "by-handle"}});
    expect_home(o, "cu", "shim");
}

// O-46: all 674 names.
TEST(Dlsym, FindsEveryNameOfTheDriverAndReachesItsRow)
{
    const Outcome o = same_as_native({{"case", "every-name"}});
    expect_home(o, "cu", "shim");
    EXPECT_EQ(674u, o.shim.size());
}

TEST(Dlsym, FindsADriverThatWasOpenedByItsFullPath)
{
    const Outcome o = same_as_native({{"case", "by-handle", fixture("driver/libcuda.so.1")}, ""});
    expect_home(o, "cu", "shim");
}

// O-44: a driver that lacks newer entry points.
TEST(Dlsym, GivesNothingForANameThatAnOldDriverLacks)
{
    same_as_native({{"case", "every-name"}, "driver_old"});
    same_as_native({{"case", "every-name"}, "driver_first"});
}

TEST(Dlsym, ThroughTheGlobalScopeGivesTheHookOfEveryName)
{
    const Outcome o = same_as_native({{"case", "every-default"}});
    expect_home(o, "cu", "shim");
}

// O-44, O-46.
TEST(Dlsym, ThroughTheGlobalScopeGivesNothingForANameThatAnOldDriverLacks)
{
    same_as_native({{"case", "every-default"}, "driver_old"});
    same_as_native({{"case", "every-default"}, "driver_first"});
}

// C7.
TEST(Dlsym, FindsNoDriverFunctionUntilLibcudaIsMappedAndTheHookAfterwards)
{
    const Outcome o = same_as_native({{"case", "before-mapped"}});
    expect_home(o, "cu", "shim");
}

// DESIGN 2: RTLD_DEFAULT gives the hook once libcuda is mapped, also where only a local scope sees
// libcuda. This is the one answer that differs from the native one, which is nothing.
TEST(Dlsym, ByDefaultGivesTheHookEvenOfALocallyMappedDriver)
{
    const Outcome o = run({{"case", "default-local"}}, true);
    EXPECT_EQ(0, o.exit) << o.out;
    expect_home(o, "cuInit shim", "shim");
    expect_home(o, "cuInit reaches", "cuInit");
}

// O-43.
TEST(Dlsym, KeepsAndClearsDlerrorAsWithoutTheShim)
{
    same_as_native({{"case", "errors"}});
}

// O-43: names that are not cu[A-Z]*, and RTLD_NEXT.
TEST(Dlsym, LeavesNamesThatAreNotTheDriversAlone)
{
    same_as_native({{"case", "other-names"}});
}

// The hook looks at the first three bytes of a name, and at no byte behind its end.
TEST(Dlsym, ReadsNoByteBehindTheEndOfAName)
{
    same_as_native({{"case", "names-at-page-end"}});
}

// DESIGN 8: dlsym has the versions GLIBC_2.2.5 and GLIBC_2.34.
TEST(Dlsym, ServesCallersOfBothItsSymbolVersions)
{
    const Outcome o = same_as_native({{"case", "symbol-versions"}});
    expect_home(o, "cu", "shim");
}

TEST(Dlsym, DoesNotTouchDlvsym)
{
    same_as_native({{"case", "by-version"}});
}

// O-43: cudnnCreate, cuteThing, and a foreign cuInit.
TEST(Dlsym, GivesAForeignLibraryItsOwnFunctionsThatLookLikeTheDrivers)
{
    same_as_native({{"case", "foreign", fixture("libplugin_foreign.so")}});
}

// DESIGN 2: a look-up with RTLD_NEXT keeps the meaning that it has for its caller.
TEST(Dlsym, FollowsTheScopeOfALibraryThatIsLinkedWithTheDriver)
{
    const Case c = {{"case", "linked-library", fixture("libplugin_linked.so")}};
    const Outcome native = run(c, false), with = run(c, true);
    EXPECT_EQ(0, native.exit) << native.out;
    EXPECT_EQ(0, with.exit) << with.out;
    expect_home(with, "through its handle", "shim");
    expect_home(with, "asked by itself", "shim");
    // Opened locally, the library's scope ends in the driver itself: that is what comes after it.
    expect_home(with, "next", "driver");
    EXPECT_EQ(native.out, with.out);
}

// O-43: from constructors, inside the loader's lock.
TEST(Dlsym, WorksInAConstructorThatIsTheFirstToUseTheDriver)
{
    const Outcome o =
        same_as_native({{"case", "constructor", fixture("libplugin_constructor.so")}});
    expect_home(o, "by handle", "shim");
}

TEST(Dlsym, WorksInAConstructorOfAPreloadedLibraryBeforeMain)
{
    Case c = {{"case", "by-handle"}};
    c.environment = {"LD_PRELOAD=" + library() + ":" + fixture("libplugin_constructor.so")};
    if (RESOLVER_SANITIZED)
        GTEST_SKIP() << "the preload order of a sanitizer leaves no place for a second library";
    const Outcome o = run(c, false);
    EXPECT_EQ(0, o.exit) << o.out;
    EXPECT_EQ(run({{"case", "by-handle"}}, false).out, o.out);
    expect_home(o, "cu", "shim");
}

// INTERPOSITION, refinement 1: "in case a driver lets names share an address".
TEST(Dlsym, GivesTheHookOfTheNameThatWasAskedForWhenTwoShareAnAddress)
{
    const Outcome o = same_as_native({{"case", "shared-address"}, "driver_aliased"});
    expect_home(o, "cuStreamQuery is", "itself");
    expect_home(o, "cuCtxGetDevice is", "itself");
}

// Route 1: bound by the loader.
TEST(Linked, ProgramReachesTheDriverThroughThePlt)
{
    same_as_native({{"case_linked", "plt"}});
}

TEST(Linked, ProgramSeesOneAddressOfAFunctionHoweverItAsks)
{
    const Outcome o = same_as_native({{"case_linked", "addresses"}});
    EXPECT_NE(std::string::npos, o.out.find("by default 674, next 674, by dlopen(NULL) 674 of 674"))
        << o.out;
}

} // namespace
} // namespace resolver
