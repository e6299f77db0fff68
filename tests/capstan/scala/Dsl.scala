// The part of Spatial that programs of patterns use, with types and sequential meaning.
//
// Not Spatial: no hardware is made, everything runs one statement after the other.  What is checked
// is what a Scala compiler checks (names, types, numbers of arguments) and what a run shows: values,
// indices inside of memories, queues that are emptied, coordinates that increase.  Words of a memory
// are zero at first.  Names follow the DSL, so that its programs compile as they are.

package spatial

import scala.collection.mutable
import scala.language.implicitConversions
import scala.reflect.ClassTag

object dsl {
  class spatial extends scala.annotation.StaticAnnotation

  abstract class SpatialTest { def main(args: Array[String]): Unit }

  /** Where files of inputs are, and where results go. */
  var folder: String = "."

  type Int = scala.Int
  type Long = scala.Long
  type Float = scala.Float
  type Double = scala.Double

  /** A word of 32 bits, which are and-ed and or-ed; it is not a number. */
  final case class U32(bits: scala.Int) {
    def &(other: U32): U32 = U32(bits & other.bits)
    def |(other: U32): U32 = U32(bits | other.bits)
  }

  abstract class Word[T](val zero: T, val add: (T, T) => T, val read: String => T)
  implicit object IntWord extends Word[Int](0, _ + _, Integer.parseInt(_))
  implicit object LongWord extends Word[Long](0L, _ + _, java.lang.Long.parseLong(_))
  implicit object FloatWord extends Word[Float](0f, _ + _, java.lang.Float.parseFloat(_))
  implicit object DoubleWord extends Word[Double](0.0, _ + _, java.lang.Double.parseDouble(_))
  implicit object BitsWord extends Word[U32](U32(0), (_, _) => sys.error("words are not added"), _ => sys.error("no words in files"))

  // The names hide the conversions of scala.Predef, whose classes have another `to`.
  final class Number(number: scala.Int) {
    def to[T](implicit word: Word[T]): T = word.read(number.toString)
    def ::(begin: scala.Int): Slice = Slice(begin, number)
    def by(step: scala.Int): Count = { require(step == 1, "steps of 1"); Count(number, 1) }
  }
  implicit def intWrapper(number: scala.Int): Number = new Number(number)
  final class Text(text: String) { def to[T](implicit word: Word[T]): T = word.read(text) }
  implicit def augmentString(text: String): Text = new Text(text)
  val wrapString = ()

  final case class Slice(begin: scala.Int, end: scala.Int) {
    require(begin <= end, s"a slice from $begin to $end")
    def par(lanes: scala.Int): Slice = this
  }

  final case class Count(extent: scala.Int, lanes: scala.Int) { def par(p: scala.Int): Count = copy(lanes = p) }

  /** Words in order; what the host reads and compares. */
  final class Words[T](val words: IndexedSeq[T]) {
    override def equals(other: Any): Boolean = other match {
      case that: Words[_] => that.words == words
      case _ => false
    }
    override def hashCode: scala.Int = words.hashCode
  }
  implicit def wordsOf[T](words: Array[T]): Words[T] = new Words(words.toIndexedSeq)

  sealed trait Memory[T] {
    def name: String
    def size: scala.Int
    protected def word: Word[T]
    protected lazy val words: mutable.Map[scala.Int, T] = mutable.HashMap()
    private def checked(index: scala.Int): scala.Int = {
      require(0 <= index && index < size, s"$name of $size words has no word $index")
      index
    }
    def apply(index: scala.Int): T = words.getOrElse(checked(index), word.zero)
    def update(index: scala.Int, value: T): Unit = words(checked(index)) = value
    def apply(slice: Slice): Part[T] = Part(this, slice)
    def load(part: Part[T]): Unit =
      for (at <- part.slice.begin until_ part.slice.end) this(at - part.slice.begin) = part.memory(at)
  }
  final case class Part[T](memory: Memory[T], slice: Slice) {
    def store(source: Memory[T]): Unit =
      for (at <- slice.begin until_ slice.end) memory(at) = source(at - slice.begin)
  }
  private implicit class Range(begin: scala.Int) { def until_(end: scala.Int) = scala.Range(begin, end) }

  final class DRAM[T](val size: scala.Int)(implicit protected val word: Word[T]) extends Memory[T] {
    def name = "a DRAM"
    def fill(given: IndexedSeq[T]): Unit = {
      require(given.size == size, s"${given.size} words for a DRAM of $size")
      for ((value, at) <- given.zipWithIndex) this(at) = value
    }
    def all: IndexedSeq[T] = (0 until_ size).map(apply(_: scala.Int))
    def stream_load_vec(begin: scala.Int, length: scala.Int, queue: FIFO[T]): Unit =
      for (at <- begin until_ begin + length) queue.enq(this(at))
    def stream_store_vec(begin: scala.Int, queue: FIFO[T], length: scala.Int): Unit =
      for (at <- begin until_ begin + length) this(at) = queue.deq
  }
  object DRAM { def apply[T: Word](size: scala.Int) = new DRAM[T](size) }

  final class SRAM[T](val size: scala.Int)(implicit protected val word: Word[T]) extends Memory[T] {
    def name = "an SRAM"
  }
  object SRAM { def apply[T: Word](size: scala.Int) = new SRAM[T](size) }

  /** Addresses in any order; -1 reads zero. */
  sealed trait Sparse[T] extends Memory[T] {
    def barrierRead(index: scala.Int, barriers: Seq[Nothing]): T = if (index == -1) word.zero else this(index)
    def barrierWrite(index: scala.Int, value: T, barriers: Seq[Nothing]): Unit = this(index) = value
    def RMW(index: scala.Int, value: T, operator: String, order: String, barriers: Seq[Nothing]): T = {
      require(operator == "add" && order == "ordered", s"an update by $operator, $order")
      this(index) = word.add(this(index), value)
      this(index)
    }
  }
  final class SparseSRAM[T](val size: scala.Int)(implicit protected val word: Word[T]) extends Sparse[T] {
    def name = "a sparse SRAM"
  }
  object SparseSRAM { def apply[T: Word](size: scala.Int, barrier: Boolean) = new SparseSRAM[T](size) }
  object SparseParSRAM {
    def apply[T: Word](parts: scala.Int)(size: scala.Int, barrier: Boolean) = new SparseSRAM[T](parts * size)
  }
  object SparseParSRAMSwizzle {
    def apply[T: Word](parts: scala.Int)(size: scala.Int, barrier: Boolean) = new SparseSRAM[T](parts * size)
  }

  /** Another view of a DRAM. */
  final class SparseDRAM[T](val size: scala.Int)(implicit protected val word: Word[T]) extends Sparse[T] {
    def name = "a sparse DRAM"
    private var viewed: Option[DRAM[T]] = None
    private def memory = viewed.getOrElse(sys.error("a sparse DRAM without an alias"))
    def alias: DRAM[T] = memory
    def alias_=(memory: DRAM[T]): Unit = {
      require(memory.size == size, s"a view of $size words of a DRAM of ${memory.size}")
      viewed = Some(memory)
    }
    override def apply(index: scala.Int): T = memory(index)
    override def update(index: scala.Int, value: T): Unit = memory(index) = value
  }
  object SparseDRAM { def apply[T: Word](ports: scala.Int)(size: scala.Int, barrier: Boolean) = new SparseDRAM[T](size) }

  final class FIFO[T] {
    private val words = mutable.Queue[T]()
    def retiming: FIFO[T] = this
    def enq(value: T): Unit = words.enqueue(value)
    def deq: T = words.dequeue()
  }
  object FIFO { def apply[T: Word](depth: scala.Int) = new FIFO[T] }

  sealed trait Cell[T] { var value: T; def :=(next: T): Unit = value = next }
  final class Reg[T](var value: T)(implicit val word: Word[T]) extends Cell[T]
  object Reg { def apply[T: Word](start: T) = new Reg[T](start) }
  final class ArgIn[T](var value: T) extends Cell[T]
  object ArgIn { def apply[T](implicit word: Word[T]) = new ArgIn[T](word.zero) }
  final class ArgOut[T](var value: T) extends Cell[T]
  object ArgOut { def apply[T](implicit word: Word[T]) = new ArgOut[T](word.zero) }

  def Accel(body: => Unit): Unit = body
  def mux[T](condition: Boolean, yes: T, no: T): T = if (condition) yes else no

  /** The set bits of one vector of words, or of two that are joined. */
  final class Scan(val lanes: scala.Int, bits: scala.Int, mode: String, left: () => U32, right: Option[() => U32]) {
    private def bitsOf(next: () => U32): IndexedSeq[Boolean] = {
      require(bits % 32 == 0 && bits <= 65536, s"a scan of $bits bits")
      (0 until_ bits / 32).flatMap { _ => val word = next().bits; (0 until_ 32).map(bit => (word >>> bit & 1) == 1) }
    }
    lazy val outputs: List[List[scala.Int]] = {
      val a = bitsOf(left)
      val b = right.map(bitsOf)
      var (atLeft, atRight) = (0, 0)
      val found = mutable.ListBuffer[List[scala.Int]]()
      for (c <- 0 until_ bits) {
        val (inLeft, inRight) = (a(c), b.exists(_(c)))
        val stop = mode match {
          case "and" => inLeft && inRight
          case "or" => inLeft || inRight
          case "" => inLeft
        }
        val (l, r) = (if (inLeft) atLeft else -1, if (inRight) atRight else -1)
        if (stop) found += (if (b.isEmpty) List(c, l) else List(c, l, found.size, r))
        if (inLeft) atLeft += 1
        if (inRight) atRight += 1
      }
      found.toList
    }
    /** A group of lanes is in one window of bits. */
    def windows: Seq[List[List[scala.Int]]] = outputs.groupBy(_.head / Scan.WindowBits).toSeq.sortBy(_._1).map(_._2)
  }
  object Scan {
    val WindowBits = 512
    def apply(lanes: scala.Int, bits: scala.Int, mode: String, left: => U32, right: => U32): Scan =
      new Scan(lanes, bits, mode, () => left, Some(() => right))
    def apply(lanes: scala.Int, bits: scala.Int, mode: String, left: => U32): Scan =
      new Scan(lanes, bits, "", () => left, None)
  }
  val ScanRed = Scan

  def Foreach(count: Count)(body: scala.Int => Unit): Unit = (0 until_ count.extent).foreach(body)
  def Foreach(scan: Scan)(body: List[scala.Int] => Unit): Unit = scan.outputs.foreach(body)

  /** Groups of `lanes` values are added as a balanced tree, missing lanes being zero; groups in order. */
  final class Reduction[T, I](result: Reg[T], lanes: scala.Int, windows: Seq[Seq[I]]) {
    private val word = result.word
    private def tree(values: Seq[T], add: (T, T) => T): T =
      if (values.size == 1) values.head
      else tree(values.grouped(2).map(pair => if (pair.size == 1) pair.head else add(pair(0), pair(1))).toSeq, add)
    def apply(body: I => T)(add: (T, T) => T): Reg[T] = {
      for (iterations <- windows; group <- iterations.grouped(lanes))
        result.value = add(result.value, tree(group.map(body).padTo(lanes, word.zero), add))
      result
    }
  }
  final class Reducer[T](result: Reg[T]) {
    def apply(count: Count) = new Reduction[T, scala.Int](result, count.lanes, Seq(0 until_ count.extent))
    def apply(scan: Scan) = new Reduction[T, List[scala.Int]](result, scan.lanes, scan.windows)
  }
  def Reduce[T](result: Reg[T]) = new Reducer[T](result)

  def gen_bitvector(shift: scala.Int, bits: scala.Int, count: scala.Int, coordinates: FIFO[Int], words: FIFO[U32]): Unit = {
    val made = new Array[scala.Int](bits / 32)
    var last = -1
    for (_ <- 0 until_ count) {
      val c = coordinates.deq
      require(last < c && c < bits, s"coordinate $c after $last of $bits bits")
      made(c / 32) |= 1 << c % 32
      last = c
    }
    made.foreach(word => words.enq(U32(word)))
  }

  def setArg[T](argument: ArgIn[T], value: T): Unit = argument := value
  def getArg[T](argument: ArgOut[T]): T = argument.value
  def setMem[T](memory: DRAM[T], words: Words[T]): Unit = memory.fill(words.words)
  def getMem[T](memory: DRAM[T]): Words[T] = new Words(memory.all)
  def loadCSV1D[T](file: String)(implicit word: Word[T]): Words[T] = {
    val source = scala.io.Source.fromFile(s"$folder/$file")
    try new Words(source.getLines.filter(!_.isEmpty).map(word.read).toIndexedSeq)
    finally source.close()
  }
  def writeCSV1D[T](words: Words[T], file: String): Unit = {
    val out = new java.io.PrintWriter(s"$folder/$file")
    try words.words.foreach(out.println)
    finally out.close()
  }
}
