import spatial.dsl._

@spatial class A_kernel(bp: scala.Int = 1, ip: scala.Int = 16, sp: scala.Int = 1) extends SpatialTest {
  type T = Int
  def main(args: Array[String]): Unit = {
    val i_size = ArgIn[T]
    setArg(i_size, args(0).to[T])
    val j_size = ArgIn[T]
    setArg(j_size, args(1).to[T])
    val B_entries1 = ArgIn[T]
    setArg(B_entries1, args(2).to[T])
    val C_entries1 = ArgIn[T]
    setArg(C_entries1, args(3).to[T])
    val j_bits = ArgIn[T]
    setArg(j_bits, args(4).to[T])
    val B_entries2 = ArgIn[T]
    setArg(B_entries2, args(5).to[T])
    val k_bits = ArgIn[T]
    setArg(k_bits, args(6).to[T])
    val C_entries2 = ArgIn[T]
    setArg(C_entries2, args(7).to[T])
    val k_size = ArgIn[T]
    setArg(k_size, args(8).to[T])
    val A_pos1_host = DRAM[T](i_size.value + 1)
    setMem(A_pos1_host, Array.fill[T](i_size.value + 1)(0.to[T]))
    val A_pos2_host = DRAM[T](B_entries1.value + C_entries1.value + 1)
    setMem(A_pos2_host, Array.fill[T](B_entries1.value + C_entries1.value + 1)(0.to[T]))
    val B_pos1_host = DRAM[T](i_size.value + 1)
    setMem(B_pos1_host, loadCSV1D[T]("B_pos1_host.csv"))
    val C_pos1_host = DRAM[T](i_size.value + 1)
    setMem(C_pos1_host, loadCSV1D[T]("C_pos1_host.csv"))
    val B_crd1_host = DRAM[T](B_entries1.value)
    setMem(B_crd1_host, loadCSV1D[T]("B_crd1_host.csv"))
    val C_crd1_host = DRAM[T](C_entries1.value)
    setMem(C_crd1_host, loadCSV1D[T]("C_crd1_host.csv"))
    val B_pos2_host = DRAM[T](B_entries1.value + 1)
    setMem(B_pos2_host, loadCSV1D[T]("B_pos2_host.csv"))
    val C_pos2_host = DRAM[T](C_entries1.value + 1)
    setMem(C_pos2_host, loadCSV1D[T]("C_pos2_host.csv"))
    val A_crd1_host = DRAM[T](B_entries1.value + C_entries1.value)
    setMem(A_crd1_host, Array.fill[T](B_entries1.value + C_entries1.value)(0.to[T]))
    val B_crd2_host = DRAM[T](B_entries2.value)
    setMem(B_crd2_host, loadCSV1D[T]("B_crd2_host.csv"))
    val C_crd2_host = DRAM[T](C_entries2.value)
    setMem(C_crd2_host, loadCSV1D[T]("C_crd2_host.csv"))
    val A_crd2_host = DRAM[T](B_entries2.value + C_entries2.value)
    setMem(A_crd2_host, Array.fill[T](B_entries2.value + C_entries2.value)(0.to[T]))
    val B_vals_host = DRAM[T](B_entries2.value)
    setMem(B_vals_host, loadCSV1D[T]("B_vals_host.csv"))
    val C_vals_host = DRAM[T](C_entries2.value)
    setMem(C_vals_host, loadCSV1D[T]("C_vals_host.csv"))
    val A_vals_host = DRAM[T](B_entries2.value + C_entries2.value)
    setMem(A_vals_host, Array.fill[T](B_entries2.value + C_entries2.value)(0.to[T]))
    Accel {
      val A_pos1_sparse = SparseDRAM[T](bp)(i_size.value + 1, true)
      A_pos1_sparse.alias = A_pos1_host
      val A_pos2_sparse = SparseDRAM[T](bp)(B_entries1.value + C_entries1.value + 1, true)
      A_pos2_sparse.alias = A_pos2_host
      val B_pos1_sparse = SparseDRAM[T](bp)(i_size.value + 1, true)
      B_pos1_sparse.alias = B_pos1_host
      val C_pos1_sparse = SparseDRAM[T](bp)(i_size.value + 1, true)
      C_pos1_sparse.alias = C_pos1_host
      val B_pos2_sparse = SparseDRAM[T](bp)(B_entries1.value + 1, true)
      B_pos2_sparse.alias = B_pos2_host
      val C_pos2_sparse = SparseDRAM[T](bp)(C_entries1.value + 1, true)
      C_pos2_sparse.alias = C_pos2_host
      val A_crd1_sparse = SparseDRAM[T](bp)(B_entries1.value + C_entries1.value, true)
      A_crd1_sparse.alias = A_crd1_host
      val A_crd2_sparse = SparseDRAM[T](bp)(B_entries2.value + C_entries2.value, true)
      A_crd2_sparse.alias = A_crd2_host
      val B_vals_sparse = SparseDRAM[T](bp)(B_entries2.value, true)
      B_vals_sparse.alias = B_vals_host
      val C_vals_sparse = SparseDRAM[T](bp)(C_entries2.value, true)
      C_vals_sparse.alias = C_vals_host
      val A_vals_sparse = SparseDRAM[T](bp)(B_entries2.value + C_entries2.value, true)
      A_vals_sparse.alias = A_vals_host
      val A_end1 = SparseParSRAM[T](bp)(16, true)
      A_pos1_sparse.barrierWrite(0, 0, Seq())
      val A_end2 = SparseParSRAM[T](bp)(16, true)
      A_pos2_sparse.barrierWrite(0, 0, Seq())
      Foreach(i_size.value by 1 par bp) { i =>
        val B_1_begin = B_pos1_sparse.barrierRead(i, Seq())
        val B_1_end = B_pos1_sparse.barrierRead(i + 1, Seq())
        val B_1_length = B_1_end - B_1_begin
        val C_1_begin = C_pos1_sparse.barrierRead(i, Seq())
        val C_1_end = C_pos1_sparse.barrierRead(i + 1, Seq())
        val C_1_length = C_1_end - C_1_begin
        val B_crd1 = FIFO[T](16).retiming
        B_crd1_host stream_load_vec(B_1_begin, B_1_length, B_crd1)
        val B_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, B_1_length, B_crd1, B_bits)
        val C_crd1 = FIFO[T](16).retiming
        C_crd1_host stream_load_vec(C_1_begin, C_1_length, C_crd1)
        val C_bits = FIFO[U32](4096)
        gen_bitvector(0, j_bits.value, C_1_length, C_crd1, C_bits)
        val B_bits_counted = FIFO[U32](4096)
        val B_bits_filled = FIFO[U32](4096)
        val C_bits_counted = FIFO[U32](4096)
        val C_bits_filled = FIFO[U32](4096)
        Foreach((j_bits.value / 32) by 1 par ip) { at_word =>
          val word = B_bits.deq
          B_bits_counted.enq(word)
          B_bits_filled.enq(word)
          val word_2 = C_bits.deq
          C_bits_counted.enq(word_2)
          C_bits_filled.enq(word_2)
        }
        val count = Reg[T](0.to[T])
        Reduce(count)(ScanRed(sp, j_bits.value, "or", B_bits_counted.deq, C_bits_counted.deq)) { case List(j_counted, j_left_counted, j_out_counted, j_right_counted) =>
          1
        } { _ + _ }
        val A_end = A_end1.RMW(0, count.value, "add", "ordered", Seq())
        val begin = A_end - count.value
        A_pos1_sparse.barrierWrite(i + 1, A_end, Seq())
        Foreach(Scan(sp, j_bits.value, "or", B_bits_filled.deq, C_bits_filled.deq)) { case List(j, j_left, j_out, j_right) =>
          val B_at = mux(j_left >= 0, B_1_begin + j_left, -1)
          val B_2_begin = B_pos2_sparse.barrierRead(B_at, Seq())
          val B_2_end = B_pos2_sparse.barrierRead(mux(B_at >= 0, B_at + 1, -1), Seq())
          val B_2_length = B_2_end - B_2_begin
          val C_at = mux(j_right >= 0, C_1_begin + j_right, -1)
          val C_2_begin = C_pos2_sparse.barrierRead(C_at, Seq())
          val C_2_end = C_pos2_sparse.barrierRead(mux(C_at >= 0, C_at + 1, -1), Seq())
          val C_2_length = C_2_end - C_2_begin
          val place = begin + j_out
          A_crd1_sparse.barrierWrite(place, j, Seq())
          val B_crd2 = FIFO[T](16).retiming
          B_crd2_host stream_load_vec(B_2_begin, B_2_length, B_crd2)
          val B_bits_2 = FIFO[U32](4096)
          gen_bitvector(0, k_bits.value, B_2_length, B_crd2, B_bits_2)
          val C_crd2 = FIFO[T](16).retiming
          C_crd2_host stream_load_vec(C_2_begin, C_2_length, C_crd2)
          val C_bits_2 = FIFO[U32](4096)
          gen_bitvector(0, k_bits.value, C_2_length, C_crd2, C_bits_2)
          val B_bits_2_counted = FIFO[U32](4096)
          val B_bits_2_filled = FIFO[U32](4096)
          val C_bits_2_counted = FIFO[U32](4096)
          val C_bits_2_filled = FIFO[U32](4096)
          Foreach((k_bits.value / 32) by 1 par ip) { at_word_2 =>
            val word_3 = B_bits_2.deq
            B_bits_2_counted.enq(word_3)
            B_bits_2_filled.enq(word_3)
            val word_4 = C_bits_2.deq
            C_bits_2_counted.enq(word_4)
            C_bits_2_filled.enq(word_4)
          }
          val count_2 = Reg[T](0.to[T])
          Reduce(count_2)(ScanRed(ip, k_bits.value, "or", B_bits_2_counted.deq, C_bits_2_counted.deq)) { case List(k_counted, k_left_counted, k_out_counted, k_right_counted) =>
            1
          } { _ + _ }
          val A_end_2 = A_end2.RMW(0, count_2.value, "add", "ordered", Seq())
          val begin_2 = A_end_2 - count_2.value
          A_pos2_sparse.barrierWrite(place + 1, A_end_2, Seq())
          Foreach(Scan(ip, k_bits.value, "or", B_bits_2_filled.deq, C_bits_2_filled.deq)) { case List(k, k_left, k_out, k_right) =>
            val B_at_2 = mux(k_left >= 0, B_2_begin + k_left, -1)
            val C_at_2 = mux(k_right >= 0, C_2_begin + k_right, -1)
            val place_2 = begin_2 + k_out
            A_crd2_sparse.barrierWrite(place_2, k, Seq())
            val B_value = B_vals_sparse.barrierRead(B_at_2, Seq())
            val C_value = C_vals_sparse.barrierRead(C_at_2, Seq())
            A_vals_sparse.barrierWrite(place_2, B_value + C_value, Seq())
          }
        }
      }
    }
    writeCSV1D(getMem(A_pos1_host), "A_pos1_host.csv")
    writeCSV1D(getMem(A_pos2_host), "A_pos2_host.csv")
    writeCSV1D(getMem(A_crd1_host), "A_crd1_host.csv")
    writeCSV1D(getMem(A_crd2_host), "A_crd2_host.csv")
    writeCSV1D(getMem(A_vals_host), "A_vals_host.csv")
  }
}
