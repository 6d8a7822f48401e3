import Foundation
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Crashes are named by debug files", .serialized)
struct SymbolTests {
  private static func take(_ rig: PageRig, _ members: String, _ number: Int) async throws {
    #expect(members.contains("buildId"))
    let packet = try StoreRig.packet([number], type: "appCrash", members: { _ in members })
    _ = try await rig.collector.store.take(packet)
  }

  private static func groups(_ rig: PageRig) async throws -> [JSONValue] {
    try await rig.json("/crashes", [("since", "0")])["groups"]?.array ?? []
  }

  private static func stack(_ rig: PageRig, _ group: JSONValue) async throws -> [JSONValue] {
    try await rig.json("/crashes/\(group["fingerprint"]?.string ?? "")")["stack"]?.array ?? []
  }

  @Test(
    "one bug in two stripped builds is one group with function, file and line once the debug files are there",
    .enabled(if: Symbolizer.isInstalled), arguments: PlantedProgram.Language.allCases.filter(\.isInstalled))
  func oneBug(language: PlantedProgram.Language) async throws {
    let (rig, program) = (try PageRig(), try PlantedProgram(language))
    for version in [1, 2] { try await Self.take(rig, try program.crash(version, bug: 1), version) }
    #expect(try await Self.groups(rig).count == 2, "nothing tells yet that the two are one")
    let folder = rig.collector.options.symbolFolder
    for version in [1, 2] {
      guard case .added = try folder.add(program.debugFile(version)) else {
        Issue.record("not added")
        return
      }
    }
    // No reader asks: the watch names and groups them again.
    while try await CrashWatch(rig.collector).look() {}
    #expect(await rig.collector.access.page.crashes.groups().count == 1)
    let groups = try await Self.groups(rig)
    #expect(groups.first?["count"] == 2 && groups.count == 1)
    let stack = try await Self.stack(rig, try #require(groups.first))
    let line = try #require(PlantedProgram.lines[1])
    let bug = try #require(stack.first { $0["function"]?.string?.hasSuffix("price") == true }, "\(stack)")
    #expect(bug["file"]?.string?.hasSuffix("/v1/\(program.sourceName)") == true)
    #expect((line...line + 1).contains(bug["line"]?.int ?? 0) && bug["isInline"] == true && bug["isApp"] == true)
    let caller = try #require(stack.first { $0["function"]?.string?.hasSuffix("pay") == true })
    #expect(caller["isInline"] == false)
  }

  @Test(
    "two bugs of a stripped program are two groups, with and without its debug file",
    .enabled(if: Symbolizer.isInstalled))
  func twoBugs() async throws {
    let (rig, program) = (try PageRig(), try PlantedProgram(.c))
    for bug in [1, 2] { try await Self.take(rig, try program.crash(1, bug: bug), bug) }
    #expect(try await Self.groups(rig).count == 2)
    _ = try rig.collector.options.symbolFolder.add(program.debugFile(1))
    let frames = try await Self.groups(rig).compactMap { $0["frame"]?.string }.sorted()
    #expect(frames == ["drawer (till.c:9)", "price (till.c:6)"])
  }

  @Test("a state stays with its group when the group gets names", .enabled(if: Symbolizer.isInstalled))
  func stateStays() async throws {
    let (rig, program) = (try PageRig(), try PlantedProgram(.c))
    try await Self.take(rig, try program.crash(1, bug: 1), 1)
    let raw = try #require(try await Self.groups(rig).first?["fingerprint"]?.string)
    let answer = await rig.collector.answerReader(
      PageRig.request(
        "/api/v1/crashes/\(raw)/state", method: .post, headers: [("content-type", "application/json")],
        body: #"{"state":"resolved","assignee":"ann"}"#), isOwner: true)
    #expect(answer.status == 200)
    _ = try rig.collector.options.symbolFolder.add(program.debugFile(1))
    let group = try #require(try await Self.groups(rig).first)
    #expect(group["fingerprint"]?.string != raw && group["state"] == "resolved")
    #expect(group["assignee"]?["text"] == "ann")
  }

  @Test(
    "a debug file without .debug_aranges has lines where binutils is installed",
    .enabled(if: Symbolizer.programs.count == 2))
  func noRanges() async throws {
    let (rig, program) = (try PageRig(), try PlantedProgram(.c))
    try await Self.take(rig, try program.crash(1, bug: 1), 1)
    #expect(PlantedProgram.run("objcopy", ["--remove-section", ".debug_aranges", program.debugFile(1)]) == 0)
    _ = try rig.collector.options.symbolFolder.add(program.debugFile(1))
    let stack = try await Self.stack(rig, try #require(try await Self.groups(rig).first))
    let line = try #require(PlantedProgram.lines[1])
    #expect((line...line + 1).contains(stack.first?["line"]?.int ?? 0), "\(stack)")
  }

  @Test("code that the compiler made before inlined functions is no frame of its own")
  func compilerCode() {
    let output = """
      0x0000000000000010
      $s4till3payyS2iF
      //<compiler-generated>:?
      $s4till4CartV5totalyS2iFs5Int32V_Tg5
      /srv/main.swift:6
      $s4till3payyS2iF
      /srv/main.swift:21

      """
    let names = SymbolName.answers(Array(output.utf8), asked: [16], isWhole: true)[16]
    #expect(names?.map(\.line) == [6, 21])
  }

  @Test("of two answers the one with more functions counts, and of equal ones the one with more lines")
  func saysMore() {
    let (named, placed) = (SymbolName(function: "pay"), SymbolName(function: "pay", file: "till.c", line: 7))
    #expect(SymbolName.saysMore([named, named], than: [placed]))
    #expect(!SymbolName.saysMore([placed], than: [named, named]))
    #expect(SymbolName.saysMore([placed], than: [named]) && !SymbolName.saysMore([placed], than: [placed]))
  }

  @Test(
    "one child of each program names all frames of a build, and what it said is kept",
    .enabled(if: Symbolizer.isInstalled))
  func oneChild() async throws {
    let (rig, program) = (StoreRig(), try PlantedProgram(.c))
    let symbols = Symbolizer(SymbolFolder(rig.path + "/symbols"), log: rig.log)
    guard case .added(let id) = try symbols.folder.add(program.debugFile(1)) else { return }
    let places = Set((0..<500).map { CodePlace(buildID: id, offset: 0x2400 + 2 * $0) })
    #expect(await symbols.files().count == 1)
    let names = await symbols.names(of: places)
    #expect(names.count == 500 && names.values.contains { $0.contains { $0.function == "pay" } })
    #expect(await symbols.names(of: places) == names)
    #expect(await symbols.children == Symbolizer.programs.count)
  }

  @Test("files that name nothing are refused with the reason", arguments: [true, false])
  func refused(isStripped: Bool) throws {
    let (rig, program) = (StoreRig(), try PlantedProgram(.c))
    let folder = SymbolFolder(rig.path + "/symbols")
    let file = isStripped ? program.program(1) : program.folder("v1/till.c")
    let fault = #expect(throws: SymbolFolder.Fault.self) { try folder.add(file) }
    #expect(fault?.message.contains(isStripped ? "it is stripped" : "no ELF file") == true)
    #expect(folder.files().isEmpty)
    guard case .added(let id) = try folder.add(program.debugFile(1)) else { return }
    #expect(try folder.add(program.debugFile(1)) == .duplicate(id))
    #expect(folder.remove(id) && !folder.remove(id) && folder.files().isEmpty)
  }

  @Test(
    "debug files of any bytes end the child at most: places of a sound one are named all the while",
    .enabled(if: Symbolizer.isInstalled))
  func hostile() async throws {
    let (rig, program) = (StoreRig(), try PlantedProgram(.c))
    let sound = try Array(Data(contentsOf: URL(filePath: program.debugFile(1))))
    var random = SeededRandom(seed: SeededRandom.announcedSeed("SymbolTests"))
    let symbols = Symbolizer(SymbolFolder(rig.path + "/symbols"), log: rig.log, cpuSeconds: 1)
    guard case .added(let id) = try symbols.folder.add(program.debugFile(1)) else { return }
    let offsets = (0..<40).map { 0x1000 + UInt64($0) * 37 }
    var (taken, refused) = (0, 0)
    for number in 0..<200 {
      var bytes = sound
      // A few bytes anywhere, or many behind the head, which the sections of DWARF are.
      for _ in 0..<(number.isMultiple(of: 2) ? 4 : 200) {
        bytes[Int.random(in: (number.isMultiple(of: 2) ? 16 : 0x400)..<bytes.count, using: &random)] =
          random.next().lowByte
      }
      if number % 10 == 9 { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &random)) }
      let hostile = String(repeating: "0", count: 36) + String(number + 4096, radix: 16)
      try Data(bytes).write(to: URL(filePath: symbols.folder.path(of: hostile)))
      let copy = rig.path + "/copy"
      try Data(bytes).write(to: URL(filePath: copy))
      do throws(SymbolFolder.Fault) {
        _ = try SymbolFolder(rig.path + "/other").add(copy)
        taken += 1
      } catch { refused += 1 }
      _ = await symbols.files()
      let names = await symbols.names(of: Set(offsets.map { CodePlace(buildID: hostile, offset: $0) }))
      #expect(names.count <= offsets.count && names.values.allSatisfy { $0.count <= 16 })
    }
    #expect(taken + refused == 200 && taken > 0)
    let place = CodePlace(buildID: id, offset: offsets[9])
    #expect(await symbols.names(of: [place])[place] != nil)
  }
}

extension UInt64 {
  fileprivate var lowByte: UInt8 { UInt8(truncatingIfNeeded: self) }
}
