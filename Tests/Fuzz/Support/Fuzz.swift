import CFuzz
import Glibc

/// Runs one harness under libFuzzer and holds it to a time per byte.
public enum Fuzz {
  /// With sanitizers. A sound parser takes a tenth of it.
  static let nanosecondsPerByteMax: Int64 = 10_000
  /// Some inputs run once more, repeated to this size: what costs more than linear time shows.
  static let repeatedBytes = 32 * 1024

  private nonisolated(unsafe) static var harness: any FuzzHarness.Type = NoHarness.self

  /// Does not return: the process ends with libFuzzer's exit code. The arguments are libFuzzer's.
  static func run(_ harness: any FuzzHarness.Type) -> Never {
    self.harness = harness
    var (count, arguments) = (CommandLine.argc, Optional(CommandLine.unsafeArgv))
    exit(
      withUnsafeMutablePointer(to: &arguments) { pointer in
        pointer.withMemoryRebound(to: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self, capacity: 1) {
          LLVMFuzzerRunDriver(&count, $0) { bytes, count in
            Fuzz.take(Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
          }
        }
      })
  }

  private static func take(_ input: [UInt8]) {
    judge(input)
    guard harness.repeatsInput, !input.isEmpty, isChosen(input) else { return }
    var repeated: [UInt8] = []
    while repeated.count < repeatedBytes { repeated += input }
    judge(repeated)
  }

  /// By the input alone, so that a saved input does the same again.
  private static func isChosen(_ input: [UInt8]) -> Bool {
    input.reduce(UInt32(17)) { $0 &* 31 &+ UInt32($1) } >> 8 & 255 == 0
  }

  private static func judge(_ input: [UInt8]) {
    let allowed = Int64(max(input.count, harness.bytesMin)) * nanosecondsPerByteMax
    // A page fault or a cold cache is no slow input: the best of three counts.
    for _ in 0..<3 where cost(of: input) <= allowed { return }
    fatalError("slow input: over \(nanosecondsPerByteMax) ns a byte, \(input.count) bytes")
  }

  private static func cost(of input: [UInt8]) -> Int64 {
    let began = prism_thread_nanoseconds()
    harness.run(input[...])
    return prism_thread_nanoseconds() - began
  }
}

private enum NoHarness: FuzzHarness {
  static func run(_ input: ArraySlice<UInt8>) {}
}

extension FuzzHarness {
  /// Of a harness as a program.
  public static func main() { Fuzz.run(self) }
}
