import PrismConfig
import PrismProtocol
import Testing

@Suite("Faults in tables of records") struct RecordConfigurationTests {
  private static let rule = "{type: order, from: ean, table: product, by: ean, into: PRODUCT, fields: [name]}"

  private static func faults(_ text: String) throws -> [String] {
    let folder = try BadConfigurationTests.folder()
    let file = "namespaces.d/shop.yaml"
    try folder.write(file, "monitorList: [{type: order}]\n" + text)
    return folder.faultLines([:]).map { String($0.dropFirst(file.utf8.count + 1)) }
  }

  @Test(
    "each fault is shown with its line, with what is allowed",
    arguments: [
      (
        "records: [{table: part, index: [ean]}]",
        "2: records[0].index: is given with direction up, must be left out; only tables with direction down have it"
      ),
      (
        "records: [{table: part, direction: both, index: [ean]}]",
        "2: records[0].index: is given with direction both, must be left out; only tables with direction down have it"
      ),
      (
        "records: [{table: part, direction: down, index: [a, b, c, d, e]}]",
        "2: records[0].index: has 5 fields, must be at most 4"
      ),
      (
        "records: [{table: part, direction: both, scope: fleet}]",
        "2: records[0].scope: is fleet, must be device with direction both; only down has fleet"
      ),
      (
        "records: [{table: product, direction: down}]\nenrich: [\(rule)]",
        "3: enrich[0].by: is ean, must be in the index of product (it has no fields); add it there, or leave `by` out for the id"
      ),
      (
        "records: [{table: product, direction: down, index: [sku, code]}]\nenrich: [\(rule)]",
        "3: enrich[0].by: is ean, must be in the index of product (code, sku); add it there, or leave `by` out for the id"
      ),
      (
        "records: [{table: part, direction: down, index: [ean]}]\nenrich: [\(rule)]",
        "3: enrich[0].table: is product, must be a table of this namespace's records with direction down"
      ),
    ])
  func corpus(text: String, fault: String) throws {
    #expect(try Self.faults(text + "\n") == [fault])
  }

  @Test("a rule finds records by a field that the table's index has") func sound() throws {
    #expect(
      try Self.faults("records: [{table: product, direction: down, index: [ean]}]\nenrich: [\(Self.rule)]\n").isEmpty)
  }
}
