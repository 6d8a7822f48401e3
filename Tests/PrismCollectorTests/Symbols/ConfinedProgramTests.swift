import Foundation
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("A program over hostile files can read, and nothing else", .enabled(if: PlantedProgram.Language.c.isInstalled))
struct ConfinedProgramTests {
  private static let source = """
    #include <errno.h>
    #include <fcntl.h>
    #include <netinet/in.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/ptrace.h>
    #include <sys/socket.h>
    #include <unistd.h>
    static void said(const char *what, int result) { printf("%s %s\\n", what, result < 0 ? strerror(errno) : "works"); }
    int main(int argc, char **argv) {
      if (strcmp(argv[1], "loop") == 0) for (;;) ;
      if (strcmp(argv[1], "wait") == 0) { for (;;) { char c; if (read(-1, &c, 1) == 0) break; } }
      if (strcmp(argv[1], "talk") == 0) for (;;) puts("0x0000000000001000");
      if (strcmp(argv[1], "fault") == 0) return *(volatile int *)16;
      int allocated = malloc(300 << 20) ? 0 : -1;
      said("read", open(argv[2], O_RDONLY));
      said("write", open(argv[3], O_WRONLY | O_CREAT, 0600));
      said("change", open(argv[2], O_RDWR));
      said("inet", socket(AF_INET, SOCK_STREAM, 0));
      said("unix", socket(AF_UNIX, SOCK_STREAM, 0));
      said("fork", fork());
      said("kill", kill(getppid(), 0));
      said("trace", (int)ptrace(PTRACE_TRACEME, 0, 0, 0));
      said("remove", unlink(argv[2]));
      said("allocate", allocated);
      said("environment", getenv("PATH") ? 0 : -1);
      return 0;
    }

    """

  private let folder = TemporaryFolder()

  init() throws {
    try folder.write(Self.source, to: "try.c")
    precondition(PlantedProgram.run("gcc", ["-o", folder("try"), folder("try.c")]) == 0)
    try folder.write("x", to: "file")
  }

  private func run(_ words: String..., outputBytesMax: Int = 65_536) -> ConfinedProgram.Ran {
    ConfinedProgram(cpuSeconds: 1, seconds: 20, memoryBytes: 200 << 20, outputBytesMax: outputBytesMax)
      .run([folder("try")] + words)
  }

  @Test("it reads files; no network, no file to write, no process, and little memory")
  func confined() {
    let ran = run("try", folder("file"), folder("new"))
    let lines = String(decoding: ran.output, as: UTF8.self).split(separator: "\n").map(String.init)
    let working = lines.filter { $0.hasSuffix(" works") }
    #expect(lines.count == 11 && working == ["read works"], "\(lines)")
    #expect(ran.fault == nil && !FileManager.default.fileExists(atPath: folder("new")))
    #expect(FileManager.default.fileExists(atPath: folder("file")))
  }

  @Test(
    "its end, its time and its output are bounded, and the fault says which bound it met",
    arguments: [
      ("loop", "its time is over"), ("talk", "its output is over 65536 bytes"), ("fault", "signal 11 ended it"),
    ])
  func bounded(word: String, fault: String) {
    let ran = run(word)
    #expect(ran.fault == fault && ran.output.count < 65_536 + 70_000)
  }

  @Test("a program that is missing is said so") func missing() {
    let limits = ConfinedProgram(cpuSeconds: 1, seconds: 20, memoryBytes: 200 << 20, outputBytesMax: 100)
    #expect(limits.run(["/nothing/here"]).fault == "it exits with 127")
  }
}
