import PrismBase
import PrismHTTP
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Sessions that were signed out")
struct EndedSessionTests {
  @Test("a session that was signed out reads nothing, with any copy of its cookie; another one goes on")
  func signedOut() async throws {
    let rig = try PageRig()
    let (session, other) = (
      try await rig.signIn("viewer-token-of-tests"), try await rig.signIn("viewer-token-of-tests")
    )
    let read = { (cookie: String) in
      await rig.answer(PageRig.request("/api/v1/fleet", headers: [("cookie", cookie)])).status
    }
    #expect(await read(session.cookie) == 200)
    let end = PageRig.request(
      "/api/v1/session/end", method: .post,
      headers: [("cookie", session.cookie), ("x-prism-change", session.change)])
    #expect(await rig.answer(end).status == 200)
    #expect(await read(session.cookie) == 401)
    #expect(await read(other.cookie) == 200)
  }

  @Test("each store remembers them until they would have expired", arguments: [StoreRig.Kind.sqlite, .postgresql])
  func stores(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store: any EndedSessionStore
    if kind == .sqlite {
      store = try SQLiteCrashStateStore(folder: rig.path)
    } else {
      let database = try await PostgreSQLRig()
      let target = try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: []))
      store = PostgreSQLCrashStateStore(target)
    }
    try await store.endSession("a", expires: 100, now: 50)
    try await store.endSession("b", expires: 200, now: 60)
    try await store.endSession("b", expires: 200, now: 60)
    #expect(try await store.endedSessions() == ["a", "b"])
    try await store.endSession("c", expires: 300, now: 101)
    #expect(try await store.endedSessions() == ["b", "c"])
  }

  @Test("another replica knows it within 2 s; while nothing is known, no session is believed")
  func replicas() async throws {
    let rig = try PageRig()
    let pair = try await rig.signIn("viewer-token-of-tests").cookie
    let session = try #require(ReaderSession(PageRig.request("/", headers: [("cookie", pair)])))
    let store = try SQLiteCrashStateStore(folder: rig.rig.path)
    let (one, other) = (EndedSessions(store, time: rig.rig.time), EndedSessions(store, time: rig.rig.time))
    #expect(try await one.contains(session) == false)
    #expect(try await other.contains(session) == false)
    try await one.end(session)
    #expect(try await one.contains(session))
    rig.rig.time.advance(by: .seconds(2))
    #expect(try await other.contains(session))
    let unknown = EndedSessions(Broken(), time: rig.rig.time)
    await #expect(throws: CollectorRefusal.unreadable) { try await unknown.contains(session) }
    await #expect(throws: CollectorRefusal.unreadable) { try await unknown.end(session) }
  }

  private struct Broken: EndedSessionStore {
    func endSession(_ nonce: String, expires: Int64, now: Int64) async throws(StoreFailure) {
      throw .unavailable("broken")
    }
    func endedSessions() async throws(StoreFailure) -> Set<String> { throw .unavailable("broken") }
  }
}
