import CFuzz
import Glibc

/// Runs one harness under libFuzzer and holds it to a time per byte.
public enum Fuzz {
  public typealias Harness = (ArraySlice<UInt8>) -> Void

  /// With sanitizers. A sound parser takes a tenth of it.
  static let nanosecondsPerByteMax: Int64 = 10_000
  /// Below this size the fixed cost of a run counts for more than its bytes.
  public static let judgedBytesMin = 4096
  /// Some inputs run once more, repeated to this size: what costs more than linear time shows.
  static let repeatedBytes = 32 * 1024

  private nonisolated(unsafe) static var harness: Harness = { _ in }
  private nonisolated(unsafe) static var repeats = true
  private nonisolated(unsafe) static var bytesMin = judgedBytesMin

  /// Does not return: the process ends with libFuzzer's exit code. The arguments are libFuzzer's.
  /// - Parameter repeatsInput: the input is text that stays meaningful when it is repeated.
  /// - Parameter bytesMin: a shorter input may take as long as one of this size.
  public static func run(
    repeatsInput: Bool = true, bytesMin: Int = judgedBytesMin, _ harness: @escaping Harness
  ) -> Never {
    (self.harness, repeats, self.bytesMin) = (harness, repeatsInput, bytesMin)
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
    guard repeats, !input.isEmpty, isChosen(input) else { return }
    var repeated: [UInt8] = []
    while repeated.count < repeatedBytes { repeated += input }
    judge(repeated)
  }

  /// By the input alone, so that a saved input does the same again.
  private static func isChosen(_ input: [UInt8]) -> Bool {
    input.reduce(UInt32(17)) { $0 &* 31 &+ UInt32($1) } >> 8 & 255 == 0
  }

  private static func judge(_ input: [UInt8]) {
    let allowed = Int64(max(input.count, bytesMin)) * nanosecondsPerByteMax
    // A page fault or a cold cache is no slow input: the best of three counts.
    for _ in 0..<3 where cost(of: input) <= allowed { return }
    fatalError("slow input: over \(nanosecondsPerByteMax) ns a byte, \(input.count) bytes")
  }

  private static func cost(of input: [UInt8]) -> Int64 {
    let began = prism_thread_nanoseconds()
    harness(input[...])
    return prism_thread_nanoseconds() - began
  }
}

extension ArraySlice<UInt8> {
  /// Takes one byte off the front; 0 if the input is used up. Steers a harness.
  public mutating func takeByte() -> UInt8 { popFirst() ?? 0 }

  /// Takes a number off the front, high byte first.
  public mutating func takeNumber() -> Int { Int(takeByte()) << 8 | Int(takeByte()) }
}
