import PrismProtocol

@testable import PrismInputs

#if FUZZ
  import FuzzSupport
#endif

/// A datagram of statsd: the reports of its samples are JSON with finite numbers, and no sample is lost.
#if FUZZ
  @main
#endif
enum StatsdHarness: FuzzHarness {
  static let repeatsInput = false

  static func run(_ input: ArraySlice<UInt8>) {
    var (groups, samples) = (StatsdGroups(), 0)
    for text in input.split(separator: UInt8(ascii: "\n")) {
      guard let line = try? StatsdLine(text) else { continue }
      groups.add(line)
      samples += line.values.count
    }
    for part in groups.take() {
      samples -= part.samples
      guard let meta = try? JSONValue(parsing: [0x7B] + part.members + [0x7D]), let numbers = meta["REDUCED"] else {
        fatalError("a report is no JSON object")
      }
      precondition(numbers["count"]?.int == part.samples, "the report counts otherwise")
      if let value = numbers["value"] { precondition(Sketch(json: value) != nil, "the numbers can't be read again") }
    }
    precondition(samples == 0, "samples are lost")
  }
}
