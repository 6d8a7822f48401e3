import PrismAdmission
import PrismProtocol

@testable import PrismInputs

#if FUZZ
  import FuzzSupport
#endif

/// Requests of OTLP in both encodings. The first byte says the signal and the encoding.
///
/// A request must fit its limits, and each record must be JSON that this program reads again.
#if FUZZ
  @main
#endif
enum OTLPHarness: FuzzHarness {
  static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    let mode = rest.takeByte()
    let signal = OTLPSignal.allCases[Int(mode & 3) % OTLPSignal.allCases.count]
    let body = Array(rest)
    let request: OTLPRequest?
    if mode & 4 == 0 {
      request = try? OTLPRequest(protobuf: body, signal)
    } else {
      request = try? OTLPRequest(json: body, signal)
    }
    guard let request else { return }
    precondition(request.recordCount <= OTLPLimits.recordsMax, "too many records")
    precondition(request.groups.count <= OTLPLimits.groupsMax, "too many groups")
    var reader = OTLPRecordReader(signal, mode & 4 == 0 ? .protobuf : .json)
    for group in request.groups.prefix(20) {
      for range in group.records.prefix(20) {
        guard let record = reader.record(range, of: body) else { continue }
        precondition(
          (try? JSONValue(parsing: [0x7B] + record.members + [0x7D], allowsDuplicateKeys: true))?.object != nil,
          "a record is no JSON object")
        if let cut = MetaCut.cut([0x7B] + record.members + [0x7D], bytesMax: 200) {
          precondition(cut.count <= 200, "a meta was cut to more than its limit")
        }
      }
    }
  }
}
