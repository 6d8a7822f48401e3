import Foundation
import PrismProtocol
import PrismTestSupport

/// A program with two planted bugs that crashes for real, in two versions, stripped, with its debug file apart.
struct PlantedProgram: Sendable {
  enum Language: String, CaseIterable, Sendable {
    case c, cpp, rust, swift

    var compiler: String { ["c": "gcc", "cpp": "g++", "rust": "rustc", "swift": "swiftc"][rawValue] ?? "" }
    var isInstalled: Bool { PlantedProgram.run(compiler, ["--version"]) == 0 }
  }

  let folder = TemporaryFolder()
  let language: Language
  /// The line of the bug, by version.
  static let lines = [1: 6, 2: 9]
  var sourceName: String {
    "till." + (["c": "c", "cpp": "cpp", "rust": "rs", "swift": "swift"][language.rawValue] ?? "")
  }

  /// - Returns: the exit code, or the number of the signal.
  @discardableResult
  static func run(
    _ program: String, _ arguments: [String], environment: [String: String] = [:], output: FileHandle? = nil
  ) -> Int32? {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
      .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
    (process.standardOutput, process.standardError) = (output ?? FileHandle.nullDevice, FileHandle.nullDevice)
    guard (try? process.run()) != nil else { return nil }
    process.waitUntilExit()
    return process.terminationStatus
  }

  private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").path

  /// The handler of the C client, compiled once.
  private static let handler: String = {
    let path = TemporaryFolder.make() + "/prism.o"
    precondition(run("gcc", ["-c", "-o", path, root + "/clients/c/prism.c"]) == 0, "clients/c/prism.c")
    return path
  }()

  init(_ language: Language) throws {
    self.language = language
    for version in [1, 2] { try build(version) }
  }

  // MARK: Building

  /// Version 2 has three lines more before the bug, and other code around it.
  private func source(_ version: Int) -> String {
    switch language {
    case .c, .cpp: cSource(version)
    case .rust: rustSource(version)
    case .swift: swiftSource(version)
    }
  }

  private func cSource(_ version: Int) -> String {
    let more = version == 2 ? "int more(int n);\nint more(int n) { return n * 3; }\nint rest = 4;\n" : ""
    let external = language == .cpp ? "extern \"C\"" : ""
    return """
      #include <stdlib.h>
      \(external) const char *prism_crash_install(const void *options);
      \(more)static int *volatile nothing;
      int drawer(int n) __attribute__((noinline));
      static inline __attribute__((always_inline)) int price(int n) {
        nothing[n] = n; return n + 1; }
      int pay(int n) __attribute__((noinline));
      int pay(int n) { int sum = price(n); return sum + \(version); }
      int drawer(int n) { nothing[n + 4] = 3; return n; }
      int main(int argc, char **argv) {
        prism_crash_install(NULL);
        return argc > 1 && argv[1][0] == '1' ? pay(argc) + 1 : drawer(argc) + 2;
      }

      """
  }

  private func rustSource(_ version: Int) -> String {
    let more = version == 2 ? "#[no_mangle] pub fn more(n: i32) -> i32 { n * 3 }\n//\n//\n" : ""
    return """
      use std::ptr;
      extern "C" { fn prism_crash_install(options: *const u8) -> *const u8; }
      \(more)struct Till { place: usize }
      impl Till {
        #[inline(always)] fn price(&self) -> i32 { unsafe {
          ptr::read_volatile((self.place * 4) as *const i32) } }
        #[inline(never)] fn pay<T: Into<i32>>(&self, n: T) -> i32 { self.price() + n.into() + \(version) }
        #[inline(never)] fn drawer(&self) -> i32 { unsafe { ptr::write_volatile(16 as *mut i32, 3) }; 1 }
      }
      fn main() {
        unsafe { prism_crash_install(ptr::null()); }
        let till = Till { place: std::env::args().count() };
        let is_pay = std::env::args().nth(1).map_or(false, |word| word == "1");
        println!("{}", if is_pay { till.pay(2i32) + 1 } else { till.drawer() + 2 });
      }

      """
  }

  private func swiftSource(_ version: Int) -> String {
    let more = version == 2 ? "@inline(never) func more(_ n: Int) -> Int { n * 3 }\n//\n//\n" : ""
    return """
      @_silgen_name("prism_crash_install") func install(_ options: UnsafeRawPointer?) -> UnsafeRawPointer?
      struct Till {
      \(more)  var place = CommandLine.arguments.count * 4
        @inline(__always) func price() -> Int32 {
          let bill = UnsafePointer<Int32>(bitPattern: place)
          return bill.unsafelyUnwrapped.pointee + 1 }
        @inline(never) func pay(_ n: Int32) -> Int32 { price() &+ n &+ \(version) }
        @inline(never) func drawer() -> Int32 {
          UnsafeMutablePointer<Int32>(bitPattern: 16 + place).unsafelyUnwrapped.pointee = 3
          return 1 }
      }
      _ = install(nil)
      let till = Till()
      print(CommandLine.arguments.count > 1 && CommandLine.arguments[1] == "1" ? till.pay(2) &+ 1 : till.drawer() &+ 2)

      """
  }

  func program(_ version: Int) -> String { folder("v\(version)/till") }
  func debugFile(_ version: Int) -> String { folder("v\(version)/till.debug") }

  private func build(_ version: Int) throws {
    try FileManager.default.createDirectory(atPath: folder("v\(version)"), withIntermediateDirectories: true)
    let source = folder("v\(version)/\(sourceName)")
    try self.source(version).write(toFile: source, atomically: false, encoding: .utf8)
    let (program, libraries) = (self.program(version), ["-lpthread", "-ldl"])
    let arguments =
      switch language {
      case .c, .cpp: ["-g", "-O1", "-o", program, source, Self.handler] + libraries
      case .rust:
        [
          "-g", "-C", "opt-level=1", "-C", "link-arg=\(Self.handler)", "-C", "link-arg=-Wl,--build-id", "-o", program,
          source,
        ]
      case .swift: ["-g", "-O", "-Xllvm", "-generate-arange-section", "-o", program, source, Self.handler]
      }
    precondition(Self.run(language.compiler, arguments) == 0, "\(language.compiler) \(arguments)")
    precondition(Self.run("objcopy", ["--only-keep-debug", program, debugFile(version)]) == 0)
    precondition(Self.run("strip", ["--strip-all", program]) == 0)
  }

  // MARK: Crashing

  /// Lets the stripped program crash. - Returns: the members of its report.
  func crash(_ version: Int, bug: Int) throws -> String {
    let spool = folder("spool")
    try? FileManager.default.removeItem(atPath: spool)
    try FileManager.default.createDirectory(atPath: spool, withIntermediateDirectories: true)
    Self.run(program(version), [String(bug)], environment: ["PRISM_CRASH_SPOOL": spool])
    let names = try FileManager.default.contentsOfDirectory(atPath: spool)
    guard let name = names.first(where: { $0.hasSuffix(".json") }) else { return "" }
    let meta = try JSONValue(parsing: Array(Data(contentsOf: URL(filePath: spool + "/" + name))))
    return String(meta.text.dropFirst().dropLast())
  }
}
