import Foundation
import PrismOutputs
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The names of streams change on the disk. The names of reports lie in their blocks.
extension StoreFaults {
  struct CollectorNames {
    /// A table or an index of one page, and the texts that lie side by side in each of its rows.
    struct Page: CustomTestStringConvertible {
      let name: String, texts: String, table: String
      var testDescription: String { name }

      static let all = ["streams", "streams_name"].map {
        Page(name: $0, texts: "device || namespace || kind", table: "streams")
      }

      /// The places of all bytes of its names in the file.
      func bytes(of path: String) throws -> [(row: String, place: Int, index: Int)] {
        let connection = try SQLiteConnection(.init(path: path, isReadOnly: true))
        let root = try connection.firstInt("SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'")
        let file = try Data(contentsOf: URL(filePath: path))
        let begin = Int(try #require(root) - 1) * PacketSchema.pageBytes
        // The names begin each cell; beside cells a page has what was there before an update.
        let number = { (place: Int) in Int(file[begin + place]) << 8 | Int(file[begin + place + 1]) }
        let cells = (0..<number(3)).map { begin + number(8 + 2 * $0) }
        var rows: [String] = []
        while let row = try connection.firstText(
          "SELECT \(texts) FROM \(table) ORDER BY id LIMIT 1 OFFSET \(rows.count)")
        {
          rows.append(row)
        }
        return try rows.flatMap { row in
          let found = cells.compactMap { cell in
            file[cell..<min(cell + row.utf8.count + 16, begin + PacketSchema.pageBytes)]
              .firstRange(of: Data(row.utf8))
          }
          .first
          return try #require(found).enumerated().map { (row, $0.element, $0.offset) }
        }
      }
    }

    private static let devices: Set<String> = ["a", "b", "c"]

    /// A store with reports of each device and each type, closed.
    private static func filled(
      _ rig: PacketStoreFolder, using random: inout SeededRandom
    ) async throws -> PacketWorkload {
      let store = try rig.open()
      var workload = PacketWorkload()
      while Set(workload.known.map(\.delivery.context.deviceID)) != devices || workload.acknowledged.count < 40 {
        await workload.send(store, packets: 2, using: &random)
      }
      await store.close()
      return workload
    }

    /// Each question in which a name is shown, or asked for. - Returns: those that were answered.
    private static func answered(path: String) async -> [String] {
      let reader = StoreReader(SQLiteSource(path: path))
      var answered: [String] = []
      func ask(_ name: String, _ question: () async throws -> Void) async {
        do {
          try await question()
          answered.append(name)
        } catch {}
      }
      await ask("page") { _ = try await reader.page(ReportFilter(scope: .everything)) }
      await ask("page of a kind") {
        var filter = ReportFilter(scope: .everything)
        filter.kind = RowKind.meta.name
        _ = try await reader.page(filter)
      }
      return answered + (await Self.answered(reader))
    }

    private static func answered(_ queries: any ReportQueries) async -> [String] {
      var answered: [String] = []
      if (try? await queries.streams(.everything, of: nil, limit: 100)) != nil { answered.append("streams") }
      if (try? await queries.types(.everything, limit: 100)) != nil { answered.append("types") }
      for (name, key) in [("types", ReportGrouping.Key.type), ("devices", .device)] {
        let grouping = ReportGrouping(bucketMilliseconds: 1000, key: key)
        if (try? await queries.counts(ReportFilter(scope: .everything), grouping)) != nil {
          answered.append("counts of \(name)")
        }
        let numbers = try? await queries.numbers(
          ReportFilter(scope: .everything), path: ["CREATE_TIME"], grouping, limit: 100)
        if numbers != nil { answered.append("numbers of \(name)") }
      }
      return answered
    }

    @Test(
      "a flipped bit of a name, or of its second copy, is never shown: the database is replaced, with all other reports",
      arguments: Page.all)
    func flipped(page: Page) async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("flipped bits of \(page.name)"))
      let rig = PacketStoreFolder()
      let workload = try await Self.filled(rig, using: &random)
      let path = rig.folder.path + "/collector.db"
      let whole = try Data(contentsOf: URL(filePath: path))
      let expected = [
        "page", "page of a kind", "types", "counts of types", "numbers of types", "counts of devices",
        "numbers of devices",
      ]
      for byte in try page.bytes(of: path) {
        for bit in soakFactor > 1 ? Array(0..<8) : [Int.random(in: 0..<8, using: &random)] {
          rig.folder.clear()
          try whole.write(to: URL(filePath: path))
          FileDamage.flip(at: byte.place, bit: bit).apply(to: path, using: &random)
          let what = "bit \(bit) of byte \(byte.index) of \(byte.row)"
          #expect(await Self.answered(path: path) == expected, "\(what)")
          let store = try rig.open()
          let lost = try await Self.lost(store, workload, what)
          #expect(rig.folder.names.contains { $0.hasPrefix("collector.db.damaged-") }, "\(what)")
          #expect(lost.isEmpty, "\(what): \(lost)")
          await store.close()
        }
      }
    }

    /// - Returns: the devices of answered reports that are not shown, when all that can be brought over was.
    private static func lost(
      _ store: SQLitePacketStore, _ workload: PacketWorkload, _ what: String
    ) async throws -> Set<String> {
      var reports: [StoredReport]?
      for _ in 0..<2 where reports == nil { reports = try? await PacketStoreFolder.reports(store) }
      var devices: [Int: String] = [:]
      for packet in workload.sent {
        for number in PacketWorkload.numbers(packet) { devices[number] = packet.delivery.context.deviceID }
      }
      for report in try #require(reports, "\(what)") {
        #expect(PacketWorkload.isWhole(report), "\(what)")
        let device = report.createdTime.flatMap { devices.removeValue(forKey: Int($0)) }
        #expect(report.device == device && report.namespace == "prism" && report.kind == RowKind.meta.name, "\(what)")
      }
      let queries = store.queries
      #expect(
        Set(try await queries.streams(.everything, of: nil, limit: 100).map(\.device)).isSubset(of: Self.devices),
        "\(what)")
      #expect(Set(try await queries.types(.everything, limit: 100).map(\.type)) == ["t0", "t1", "t2"], "\(what)")
      return Set(devices.values)
    }

    @Test("a question of the page that finds the damage leads to the repair, once", arguments: Page.all)
    func page(page: Page) async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("a damaged name on the page, \(page.name)"))
      let rig = PacketStoreFolder()
      _ = try await Self.filled(rig, using: &random)
      let path = rig.folder.path + "/collector.db"
      let byte = try #require(try page.bytes(of: path).randomElement(using: &random))
      FileDamage.flip(at: byte.place, bit: 0).apply(to: path, using: &random)
      let store = try rig.open()
      let queries = store.queries
      func setAside() -> Int {
        rig.folder.names.count {
          $0.hasPrefix("collector.db.damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
        }
      }
      for _ in 0..<5 { #expect(await Self.answered(queries).count < 6 || setAside() > 0) }
      for _ in 0..<100_000 where setAside() == 0 {
        await Task.yield()
        _ = try await store.deviceCount()
      }
      #expect(await Self.answered(queries).count == 6)
      _ = try await PacketStoreFolder.reports(store)
      #expect(setAside() == 1)
      await store.close()
    }

    /// Names of senders are compared at the start, so the repair comes before the first packet.
    @Test("a packet whose stream has another name in the table is not taken before the repair")
    func taking() async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("a packet of a damaged name"))
      for page in Page.all where page.name == page.table {
        let rig = PacketStoreFolder()
        var workload = try await Self.filled(rig, using: &random)
        let path = rig.folder.path + "/collector.db"
        for byte in try page.bytes(of: path) where byte.index == 0 {
          FileDamage.flip(at: byte.place, bit: 1).apply(to: path, using: &random)
        }
        let store = try rig.open()
        let isRepaired = rig.folder.names.contains { $0.hasPrefix("collector.db.damaged-") }
        #expect(isRepaired == (page.name == "streams"))
        #expect(await workload.send(store, packets: 1, using: &random) == isRepaired, "\(page.name)")
        #expect(await workload.send(store, packets: 1, using: &random), "\(page.name)")
        await store.close()
      }
    }
  }
}
