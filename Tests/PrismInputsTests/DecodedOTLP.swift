import PrismProtocol

@testable import PrismInputs

/// A request with all of its records read.
struct DecodedOTLP {
  struct Group {
    var origin: OTLPOrigin
    var scope: [UInt8]
    var records: [OTLPRecord]
  }

  var groups: [Group] = []
  var unusable: [String: Int] = [:]
  var recordCount: Int { groups.reduce(0) { $0 + $1.records.count } }

  init(protobuf body: [UInt8], _ signal: OTLPSignal) throws {
    self.init(try OTLPRequest(protobuf: body, signal), body, OTLPRecordReader(signal, .protobuf))
  }

  init(json body: [UInt8], _ signal: OTLPSignal) throws {
    self.init(try OTLPRequest(json: body, signal), body, OTLPRecordReader(signal, .json))
  }

  private init(_ request: OTLPRequest, _ body: [UInt8], _ reader: OTLPRecordReader) {
    var reader = reader
    for group in request.groups {
      let records = group.records.compactMap { reader.record($0, of: body) }
      groups.append(Group(origin: group.origin, scope: group.scope, records: records))
    }
    unusable = request.unusable.merging(reader.unusable, uniquingKeysWith: +)
  }
}
