import PrismProtocol
import Testing

@Suite("The ledger")
struct LedgerTests {
  @Test("moving rows between accounts keeps the identity; storing without waiting breaks it")
  func identity() {
    var ledger = Ledger()
    ledger.stored += 5
    #expect(!ledger.isBalanced)
    ledger[.waiting] += 5
    ledger.move(3, from: .waiting, to: .claimed)
    ledger.move(2, from: .claimed, to: .delivered)
    #expect(ledger.isBalanced)
    #expect(ledger[.waiting] == 2 && ledger[.claimed] == 1 && ledger[.delivered] == 2)
  }

  @Test("the header names the epoch and what was lost, in the order of the specification")
  func header() {
    var ledger = Ledger()
    ledger.stored = 9
    ledger[.delivered] = 4
    ledger[.corrupt] = 1
    #expect(
      ledger.header(epoch: "e1", store: nil)
        == "epoch=e1;stored=9;delivered=4;expired=0;evicted=0;cleared=0;dead=0;removed=0")
  }

  @Test(
    "a merged meta is as long as it was said to be", arguments: [true, false], [nil, Int64(-5), 1_732_154_081_000])
  func splicedSize(isBusiness: Bool, createdTime: Int64?) throws {
    for (context, body) in [("", ""), (#""A":"1""#, ""), ("", #""b":2"#), (#""A":"1""#, #""b":2"#)] {
      var meta: [UInt8] = []
      let splicing = MetaSplicing(monitorType: "shop-order".utf8, isBusiness: isBusiness, context: Array(context.utf8))
      Array(body.utf8).withUnsafeBytes { body in
        Array("r1".utf8).withUnsafeBytes {
          splicing.append(.given($0), createdTime: createdTime, body: body, to: &meta)
        }
      }
      let size = MetaSplicing.size(
        monitorTypeBytes: 10, reportIDBytes: 2, createdTime: createdTime, isBusiness: isBusiness,
        contextBytes: context.utf8.count, bodyBytes: body.utf8.count)
      #expect(meta.count == size)
      #expect(try JSONValue(parsing: meta)["IS_BIZ"]?.bool == isBusiness)
      #expect(try JSONValue(parsing: meta)["CREATE_TIME"]?.int == createdTime.map(Int.init))
    }
  }
}
