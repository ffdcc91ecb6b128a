// tutti-plan: prints, draws, proves, translates and simulates schedules of collectives. See docs/plans.md.
#include "base/descriptors.h"
#include "tools/tutti_plan/command.h"

int main(int argc, char** argv) {
  using namespace tutti::tool;
  const tutti::HeldStdio held;  // or a file that is written would get the number, and what is printed
  CLI::App app("Prints, draws, proves, translates and simulates schedules of collectives.", "tutti-plan");
  app.require_subcommand(1);
  app.footer("Exit status: 0 done, 1 refused or failed (why is on standard error), 2 wrong usage.");
  int status = Exit::ok;
  add_list(app, status);
  add_explain(app, status);
  add_show(app, status);
  add_verify(app, status);
  add_translate(app, status);
  add_simulate(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? Exit::ok : Exit::bad_usage;
  }
  return status;
}
